package main

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	nodeName = "node"
	// statusPeriod is how many seconds pass between two writes of the node's status.
	statusPeriod = 10
	// mostPods is more than any test brings.
	mostPods = 1_000_000
)

// nodeQuantities is what the Node says of extended resources, by name.
type nodeQuantities struct {
	Capacity    map[string]int64 `json:"capacity"`
	Allocatable map[string]int64 `json:"allocatable"`
}

// deviceQuantities is what the device manager says: its numbers, and the resources that it has just forgotten.
type deviceQuantities func() (capacity, allocatable v1.ResourceList, forgotten []string)

// nodeObject is the Node in the API server. Time is the caller's, in seconds.
type nodeObject struct {
	mutex     sync.Mutex
	node      v1.Node
	devices   deviceQuantities
	isWritten bool
	writtenAt float64
}

// newNodeObject is the Node that a kubelet finds when it starts. On a node that kubelet takes for a new one all extended
// resources are reset to 0.
func newNodeObject(before nodeQuantities, isNew bool, devices deviceQuantities) *nodeObject {
	object := &nodeObject{devices: devices}
	object.node = v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: nodeName},
		Status:     v1.NodeStatus{Capacity: quantityList(before.Capacity), Allocatable: quantityList(before.Allocatable)},
	}
	if isNew {
		for _, list := range []v1.ResourceList{object.node.Status.Capacity, object.node.Status.Allocatable} {
			for name := range list {
				list[name] = *resource.NewQuantity(0, resource.DecimalSI)
			}
		}
	}
	return object
}

// at is the Node as it is in the API server at that time: kubelet writes it at its start, and then periodically.
func (n *nodeObject) at(now float64) *v1.Node {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if !n.isWritten || now-n.writtenAt >= statusPeriod {
		n.isWritten, n.writtenAt = true, now
		n.write()
	}
	return n.node.DeepCopy()
}

// write takes over the device manager's numbers. A resource that it has forgotten stays, with 0.
func (n *nodeObject) write() {
	capacity, allocatable, forgotten := n.devices()
	status := &n.node.Status
	for name, quantity := range capacity {
		status.Capacity[name] = quantity
	}
	for _, name := range forgotten {
		status.Capacity[v1.ResourceName(name)] = *resource.NewQuantity(0, resource.DecimalSI)
	}
	status.Allocatable = status.Capacity.DeepCopy()
	for name, quantity := range allocatable {
		status.Allocatable[name] = quantity
	}
}

// forAdmission is the Node with room for any number of pods.
func (n *nodeObject) forAdmission(now func() float64) func(context.Context, bool) (*v1.Node, error) {
	return func(context.Context, bool) (*v1.Node, error) {
		node := n.at(now())
		node.Status.Allocatable[v1.ResourcePods] = *resource.NewQuantity(mostPods, resource.DecimalSI)
		return node, nil
	}
}

func quantityList(amounts map[string]int64) v1.ResourceList {
	list := v1.ResourceList{}
	for name, amount := range amounts {
		list[v1.ResourceName(name)] = *resource.NewQuantity(amount, resource.DecimalSI)
	}
	return list
}

func amounts(list v1.ResourceList) map[string]int64 {
	result := map[string]int64{}
	for name, quantity := range list {
		result[string(name)] = quantity.Value()
	}
	return result
}
