package main

import (
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/resourceupdates"
)

// health is the health of a container's devices by resource and id, as a pod's status shows it.
type health map[string]map[string]string

// statuses are the pods' statuses as kubelet wrote them last; by pod uid and container.
type statuses struct {
	logger  klog.Logger
	devices *devicemanager.ManagerImpl
	pods    *podBook
	mutex   sync.Mutex
	written map[string]map[string]health
}

func newStatuses(logger klog.Logger, devices *devicemanager.ManagerImpl, pods *podBook) *statuses {
	return &statuses{logger: logger, devices: devices, pods: pods, written: map[string]map[string]health{}}
}

// follow writes the statuses that the device manager wants written.
func (s *statuses) follow(updates <-chan resourceupdates.Update) {
	for update := range updates {
		for _, uid := range update.PodUIDs {
			if pod, err := s.pods.find(uid); err == nil {
				s.write(pod)
			}
		}
	}
}

// write writes a pod's status: the health of its devices is looked up anew.
func (s *statuses) write(pod *v1.Pod) {
	if !reportsDeviceHealth() {
		return
	}
	status := v1.PodStatus{}
	for _, container := range pod.Spec.Containers {
		status.ContainerStatuses = append(status.ContainerStatuses, v1.ContainerStatus{Name: container.Name})
	}
	updateStatus(s.logger, s.devices, pod, &status)
	byContainer := map[string]health{}
	for _, container := range status.ContainerStatuses {
		for _, held := range container.AllocatedResourcesStatus {
			if byContainer[container.Name] == nil {
				byContainer[container.Name] = health{}
			}
			byID := map[string]string{}
			for _, device := range held.Resources {
				byID[string(device.ResourceID)] = string(device.Health)
			}
			byContainer[container.Name][string(held.Name)] = byID
		}
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.written[string(pod.UID)] = byContainer
}

func (s *statuses) of(uid string) map[string]health {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.written[uid]
}
