package main

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/kubelet/cm/devicemanager"
)

// runOptions is what the runtime is given for the devices of a container.
type runOptions struct {
	Envs        map[string]string `json:"envs"`
	Mounts      []mount           `json:"mounts"`
	Devices     []deviceNode      `json:"devices"`
	Annotations map[string]string `json:"annotations"`
	CDIDevices  []string          `json:"cdi_devices"`
}

type mount struct {
	ContainerPath string `json:"container_path"`
	HostPath      string `json:"host_path"`
	ReadOnly      bool   `json:"read_only"`
}

type deviceNode struct {
	ContainerPath string `json:"container_path"`
	HostPath      string `json:"host_path"`
	Permissions   string `json:"permissions"`
}

// startContainer does what kubelet does before each start of a container.
func (k *kubelet) startContainer(uid, name string) (runOptions, error) {
	pod, err := k.pods.find(uid)
	if err != nil {
		return runOptions{}, err
	}
	container, err := containerOf(pod, name)
	if err != nil {
		return runOptions{}, err
	}
	options, err := k.devices.GetDeviceRunContainerOptions(k.ctx, pod, container)
	if err != nil {
		return runOptions{}, err
	}
	k.statuses.write(pod)
	return shown(options), nil
}

func containerOf(pod *v1.Pod, name string) (*v1.Container, error) {
	for _, container := range containersOf(pod) {
		if container.Name == name {
			return container, nil
		}
	}
	return nil, fmt.Errorf("pod %s has no container %s", pod.Name, name)
}

func shown(options *devicemanager.DeviceRunContainerOptions) runOptions {
	result := runOptions{Envs: map[string]string{}, Annotations: map[string]string{}}
	if options == nil {
		return result
	}
	for _, env := range options.Envs {
		result.Envs[env.Name] = env.Value
	}
	for _, m := range options.Mounts {
		result.Mounts = append(result.Mounts, mount{m.ContainerPath, m.HostPath, m.ReadOnly})
	}
	for _, d := range options.Devices {
		result.Devices = append(result.Devices, deviceNode{d.PathInContainer, d.PathOnHost, d.Permissions})
	}
	for _, annotation := range options.Annotations {
		result.Annotations[annotation.Name] = annotation.Value
	}
	for _, device := range options.CDIDevices {
		result.CDIDevices = append(result.CDIDevices, device.Name)
	}
	return result
}

// deviceIDs are the ids that each container of a pod holds, by container and resource.
func (k *kubelet) deviceIDs(uid string) (map[string]map[string][]string, error) {
	pod, err := k.pods.find(uid)
	if err != nil {
		return nil, err
	}
	held := map[string]map[string][]string{}
	for _, container := range containersOf(pod) {
		held[container.Name] = map[string][]string{}
		for name, instances := range k.devices.GetDevices(uid, container.Name) {
			for id := range instances {
				held[container.Name][name] = append(held[container.Name][name], id)
			}
		}
	}
	return held, nil
}
