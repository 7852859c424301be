package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/containermap"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// glance is how often a wait looks whether what it waits for is there.
const glance = 2 * time.Millisecond

// kubelet is the parts of kubelet that a device plugin meets, put together as kubelet does.
type kubelet struct {
	ctx       context.Context
	devices   *devicemanager.ManagerImpl
	topology  topologymanager.Manager
	handlers  []lifecycle.PodAdmitHandler
	pods      *podBook
	node      *nodeObject
	statuses  *statuses
	sources   sources
	admitting sync.Mutex
	now       float64
}

// start starts a kubelet on what the checkpoint, the API server and the runtime have.
func start(ctx context.Context, with settings) (*kubelet, error) {
	logger := klog.FromContext(ctx)
	k := &kubelet{ctx: ctx, pods: newPodBook(with.Pods)}
	var err error
	if k.topology, err = newTopologyManager(logger, with.Topology); err != nil {
		return nil, fmt.Errorf("topology manager: %w", err)
	}
	if k.devices, err = newDeviceManager(logger, with.Topology, k.topology); err != nil {
		return nil, fmt.Errorf("device manager: %w", err)
	}
	k.topology.AddHintProvider(logger, k.devices)
	isNew := k.devices.ShouldResetExtendedResourceCapacity()
	k.node = newNodeObject(with.Node, isNew, func() (v1.ResourceList, v1.ResourceList, []string) {
		return quantities(logger, k.devices)
	})
	k.statuses = newStatuses(logger, k.devices, k.pods)
	k.handlers = []lifecycle.PodAdmitHandler{
		k.topology,
		lifecycle.NewPredicateAdmitHandler(
			k.node.forAdmission(func() float64 { return k.now }), noPreemption{}, k.devices.UpdatePluginResources,
		),
	}
	if err := servePodResources(ctx, k.pods, k.devices); err != nil {
		return nil, fmt.Errorf("pod resources: %w", err)
	}
	known, running := containersOfRuntime(with.Running)
	if err := k.devices.Start(logger, k.pods.active, &k.sources, known, running); err != nil {
		return nil, fmt.Errorf("device manager: %w", err)
	}
	go k.statuses.follow(k.devices.Updates())
	return k, nil
}

// containersOfRuntime is what the runtime reports when kubelet starts: the containers, and the ids of those that run.
func containersOfRuntime(running []containerName) (containermap.ContainerMap, sets.Set[string]) {
	known, ids := containermap.NewContainerMap(), sets.New[string]()
	for _, name := range running {
		id := containerID(name.PodUID, name.Container)
		known.Add(name.PodUID, name.Container, id)
		ids.Insert(id)
	}
	return known, ids
}

func containerID(podUID, container string) string {
	return podUID + "/" + container
}

// waitFor waits until so many devices of a resource are allocatable.
func (k *kubelet) waitFor(resource string, atLeast int64, patience time.Duration) error {
	deadline := time.Now().Add(patience)
	for {
		_, allocatable, _ := quantities(klog.FromContext(k.ctx), k.devices)
		amount := allocatable[v1.ResourceName(resource)]
		if amount.Value() >= atLeast {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s has %d devices, not %d, after %s", resource, amount.Value(), atLeast, patience)
		}
		time.Sleep(glance)
	}
}

// sources tells the device manager whether kubelet has heard of all its pods yet.
type sources struct {
	ready atomic.Bool
}

func (*sources) AddSource(string) {}

func (s *sources) AllReady() bool { return s.ready.Load() }
