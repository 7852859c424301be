package main

import (
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
)

// verdict says whether a pod was admitted, how many seconds the admission handlers took, and if it was not, what kubelet
// writes into its status.
type verdict struct {
	Admitted bool    `json:"admitted"`
	Seconds  float64 `json:"seconds"`
	Reason   string  `json:"reason"`
	Message  string  `json:"message"`
}

// admit takes a pod through the admission handlers, one pod at a time as kubelet does. A pod that is not admitted has
// failed.
func (k *kubelet) admit(spec podSpec, now float64) verdict {
	k.admitting.Lock()
	defer k.admitting.Unlock()
	k.now = now
	pod := k.pods.add(spec)
	attributes := admissionOf(pod, k.others(pod))
	start := time.Now()
	for _, handler := range k.handlers {
		if result := admitBy(k.ctx, handler, attributes); !result.Admit {
			k.pods.enter(pod, v1.PodFailed)
			return verdict{Seconds: time.Since(start).Seconds(), Reason: result.Reason, Message: result.Message}
		}
	}
	took := time.Since(start).Seconds()
	if active(pod) {
		k.pods.enter(pod, v1.PodRunning)
	}
	for _, container := range containersOf(pod) {
		id := containerID(string(pod.UID), container.Name)
		trackContainer(klog.FromContext(k.ctx), k.topology, pod, container, id)
	}
	k.statuses.write(pod)
	return verdict{Admitted: true, Seconds: took}
}

func (k *kubelet) others(pod *v1.Pod) []*v1.Pod {
	var others []*v1.Pod
	for _, other := range k.pods.active() {
		if other.UID != pod.UID {
			others = append(others, other)
		}
	}
	return others
}

// end notes that the containers of a pod have ended; the device manager finds out when it needs devices.
func (k *kubelet) end(uid string, isDeleted bool) error {
	pod, err := k.pods.find(uid)
	if err != nil {
		return err
	}
	for _, container := range containersOf(pod) {
		id := containerID(uid, container.Name)
		if err := forgetContainer(klog.FromContext(k.ctx), k.topology, id); err != nil {
			return fmt.Errorf("topology manager: %w", err)
		}
	}
	if isDeleted {
		k.pods.remove(uid)
	} else if active(pod) {
		k.pods.enter(pod, v1.PodSucceeded)
	}
	return nil
}

// noPreemption evicts nobody to make room, as kubelet does for pods that are not critical.
type noPreemption struct{}

var _ lifecycle.AdmissionFailureHandler = noPreemption{}
