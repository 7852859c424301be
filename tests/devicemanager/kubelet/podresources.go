package main

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"

	"google.golang.org/grpc"
	v1 "k8s.io/api/core/v1"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
	apisgrpc "k8s.io/kubernetes/pkg/kubelet/apis/grpc"
	"k8s.io/kubernetes/pkg/kubelet/apis/podresources"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
)

const podResourcesSocket = "/var/lib/kubelet/pod-resources/kubelet.sock"

// servePodResources serves kubelet's own PodResources server, with its rate limit.
func servePodResources(ctx context.Context, pods *podBook, devices *devicemanager.ManagerImpl) error {
	if err := os.MkdirAll(filepath.Dir(podResourcesSocket), 0o750); err != nil {
		return err
	}
	if err := os.Remove(podResourcesSocket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", podResourcesSocket)
	if err != nil {
		return err
	}
	limit := apisgrpc.WithRateLimiter(ctx, "podresources", podresources.DefaultQPS, podresources.DefaultBurstTokens)
	server := grpc.NewServer(limit)
	providers := podresources.PodResourcesProviders{
		Pods:             podsProvider{pods},
		Devices:          devicesProvider{devices},
		Cpus:             noCPUs{},
		Memory:           noMemory{},
		DynamicResources: noClaims{},
	}
	podresourcesapi.RegisterPodResourcesListerServer(server, podresources.NewV1PodResourcesServer(ctx, providers))
	go server.Serve(listener)
	return nil
}

// podsProvider gives the PodResources server its pods.
type podsProvider struct {
	book *podBook
}

func (p podsProvider) GetActivePods() []*v1.Pod { return p.book.active() }

func (p podsProvider) GetPods() []*v1.Pod { return p.book.all() }

func (p podsProvider) GetPodByName(namespace, name string) (*v1.Pod, bool) {
	for _, pod := range p.book.active() {
		if pod.Namespace == namespace && pod.Name == name {
			return pod, true
		}
	}
	return nil, false
}

// devicesProvider gives it the device manager's devices, one entry for each NUMA node of each.
type devicesProvider struct {
	manager *devicemanager.ManagerImpl
}

func (p devicesProvider) GetDevices(podUID, container string) []*podresourcesapi.ContainerDevices {
	return entries(p.manager.GetDevices(podUID, container))
}

func entries(instances devicemanager.ResourceDeviceInstances) []*podresourcesapi.ContainerDevices {
	var result []*podresourcesapi.ContainerDevices
	for name, devices := range instances {
		for id, device := range devices {
			if device.GetTopology() == nil {
				result = append(result, &podresourcesapi.ContainerDevices{ResourceName: name, DeviceIds: []string{id}})
			}
			for _, node := range device.GetTopology().GetNodes() {
				nodes := []*podresourcesapi.NUMANode{{ID: node.GetID()}}
				result = append(result, &podresourcesapi.ContainerDevices{
					ResourceName: name,
					DeviceIds:    []string{id},
					Topology:     &podresourcesapi.TopologyInfo{Nodes: nodes},
				})
			}
		}
	}
	return result
}

// noCPUs, noMemory and noClaims stand for managers that have nothing to give.
type (
	noCPUs   struct{}
	noMemory struct{}
	noClaims struct{}
)
