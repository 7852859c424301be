package main

import "encoding/json"

// settings is what a run starts from: how kubelet is configured, and what the API server and the runtime have.
type settings struct {
	Topology topologySettings `json:"topology"`
	Pods     []podRecord      `json:"pods"`
	Running  []containerName  `json:"running"`
	Node     nodeQuantities   `json:"node"`
}

// topologySettings configures the topology manager; Distances has a row for each NUMA node, in the order of NUMANodes.
type topologySettings struct {
	Policy    string            `json:"policy"`
	Scope     string            `json:"scope"`
	Options   map[string]string `json:"options"`
	NUMANodes []int             `json:"numa_nodes"`
	Distances [][]uint64        `json:"distances"`
}

// containerName names a container as the runtime knows it.
type containerName struct {
	PodUID    string `json:"pod_uid"`
	Container string `json:"container"`
}

// machineOf describes the machine's NUMA nodes as cadvisor does. Node is its type for one, which lives in another package
// in each version and is therefore never named here.
func machineOf[Node any](with topologySettings) ([]Node, error) {
	type node struct {
		ID        int      `json:"node_id"`
		Distances []uint64 `json:"distances"`
	}
	nodes := make([]node, len(with.NUMANodes))
	for index, id := range with.NUMANodes {
		nodes[index].ID = id
		if index < len(with.Distances) {
			nodes[index].Distances = with.Distances[index]
		}
	}
	text, err := json.Marshal(nodes)
	if err != nil {
		return nil, err
	}
	var machine []Node
	return machine, json.Unmarshal(text, &machine)
}
