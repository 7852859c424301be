//go:build !kubernetes_1_37

// What differs between versions of Kubernetes in the functions that we call: 1.35 and 1.36.

package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

func newTopologyManager(_ klog.Logger, with topologySettings) (topologymanager.Manager, error) {
	machine, err := machineFor(devicemanager.NewManagerImpl, with)
	if err != nil {
		return nil, err
	}
	return topologymanager.NewManager(machine, with.Policy, with.Scope, with.Options)
}

func newDeviceManager(
	_ klog.Logger, with topologySettings, store topologymanager.Store,
) (*devicemanager.ManagerImpl, error) {
	machine, err := machineFor(devicemanager.NewManagerImpl, with)
	if err != nil {
		return nil, err
	}
	return devicemanager.NewManagerImpl(machine, store)
}

// machineFor makes the description of the machine that the function takes.
func machineFor[Node any](
	_ func([]Node, topologymanager.Store) (*devicemanager.ManagerImpl, error), with topologySettings,
) ([]Node, error) {
	return machineOf[Node](with)
}

func quantities(_ klog.Logger, m *devicemanager.ManagerImpl) (v1.ResourceList, v1.ResourceList, []string) {
	return m.GetCapacity()
}

func admissionOf(pod *v1.Pod, others []*v1.Pod) *lifecycle.PodAdmitAttributes {
	return &lifecycle.PodAdmitAttributes{Pod: pod, OtherPods: others}
}

func admitBy(_ context.Context, h lifecycle.PodAdmitHandler, a *lifecycle.PodAdmitAttributes) lifecycle.PodAdmitResult {
	return h.Admit(a)
}

func (noPreemption) HandleAdmissionFailure(
	_ context.Context, _ *v1.Pod, reasons []lifecycle.PredicateFailureReason,
) ([]lifecycle.PredicateFailureReason, error) {
	return reasons, nil
}

func trackContainer(_ klog.Logger, m topologymanager.Manager, pod *v1.Pod, container *v1.Container, id string) {
	m.AddContainer(pod, container, id)
}

func forgetContainer(_ klog.Logger, m topologymanager.Manager, id string) error {
	return m.RemoveContainer(id)
}

func reportsDeviceHealth() bool {
	return utilfeature.DefaultFeatureGate.Enabled(features.ResourceHealthStatus)
}

func updateStatus(_ klog.Logger, m *devicemanager.ManagerImpl, pod *v1.Pod, status *v1.PodStatus) {
	m.UpdateAllocatedResourcesStatus(pod, status)
}

func (p devicesProvider) UpdateAllocatedDevices() { p.manager.UpdateAllocatedDevices() }

func (p devicesProvider) GetAllocatableDevices() []*podresourcesapi.ContainerDevices {
	return entries(p.manager.GetAllocatableDevices())
}

func (noCPUs) GetCPUs(_, _ string) []int64 { return nil }

func (noCPUs) GetAllocatableCPUs() []int64 { return nil }

func (noMemory) GetMemory(_, _ string) []*podresourcesapi.ContainerMemory { return nil }

func (noMemory) GetAllocatableMemory() []*podresourcesapi.ContainerMemory { return nil }

func (noClaims) GetDynamicResources(*v1.Pod, *v1.Container) []*podresourcesapi.DynamicResource {
	return nil
}
