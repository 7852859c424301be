package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podSpec is a pod as far as devices go.
type podSpec struct {
	UID            string          `json:"uid"`
	Name           string          `json:"name"`
	Namespace      string          `json:"namespace"`
	InitContainers []containerSpec `json:"init_containers"`
	Containers     []containerSpec `json:"containers"`
}

// containerSpec is a container and its limits of extended resources; a restartable init container is a sidecar.
type containerSpec struct {
	Name        string           `json:"name"`
	Limits      map[string]int64 `json:"limits"`
	Restartable bool             `json:"restartable"`
}

// pod is the pod as the API server would show it to kubelet.
func (p podSpec) pod() *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{UID: types.UID(p.UID), Name: p.Name, Namespace: p.Namespace},
		Spec: v1.PodSpec{
			NodeName:       nodeName,
			InitContainers: containers(p.InitContainers),
			Containers:     containers(p.Containers),
		},
		Status: v1.PodStatus{Phase: v1.PodPending},
	}
}

func containers(specs []containerSpec) []v1.Container {
	result := make([]v1.Container, len(specs))
	for index, spec := range specs {
		quantities := v1.ResourceList{}
		for name, amount := range spec.Limits {
			quantities[v1.ResourceName(name)] = *resource.NewQuantity(amount, resource.DecimalSI)
		}
		result[index] = v1.Container{
			Name:      spec.Name,
			Resources: v1.ResourceRequirements{Limits: quantities, Requests: quantities.DeepCopy()},
		}
		if spec.Restartable {
			always := v1.ContainerRestartPolicyAlways
			result[index].RestartPolicy = &always
		}
	}
	return result
}

// containersOf are all containers of a pod, init containers first.
func containersOf(pod *v1.Pod) []*v1.Container {
	var result []*v1.Container
	for _, list := range [][]v1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for index := range list {
			result = append(result, &list[index])
		}
	}
	return result
}
