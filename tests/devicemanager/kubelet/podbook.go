package main

import (
	"fmt"
	"sync"

	v1 "k8s.io/api/core/v1"
)

// podRecord is a pod of the API server: one that kubelet is to look at, and whether it has ended.
type podRecord struct {
	Pod   podSpec `json:"pod"`
	Ended bool    `json:"ended"`
}

// podBook has the pods that kubelet knows, in the order in which they came.
type podBook struct {
	mutex sync.Mutex
	uids  []string
	pods  map[string]*v1.Pod
}

func newPodBook(records []podRecord) *podBook {
	book := &podBook{pods: map[string]*v1.Pod{}}
	for _, record := range records {
		pod := book.add(record.Pod)
		if record.Ended {
			pod.Status.Phase = v1.PodSucceeded
		} else {
			pod.Status.Phase = v1.PodRunning
		}
	}
	return book
}

// add enters a pod, or finds the one with its uid.
func (b *podBook) add(spec podSpec) *v1.Pod {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if pod, known := b.pods[spec.UID]; known {
		return pod
	}
	pod := spec.pod()
	b.uids = append(b.uids, spec.UID)
	b.pods[spec.UID] = pod
	return pod
}

func (b *podBook) find(uid string) (*v1.Pod, error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	pod, known := b.pods[uid]
	if !known {
		return nil, fmt.Errorf("there is no pod with uid %s", uid)
	}
	return pod, nil
}

// enter notes the phase that a pod is in now.
func (b *podBook) enter(pod *v1.Pod, phase v1.PodPhase) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	pod.Status.Phase = phase
}

func (b *podBook) remove(uid string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	delete(b.pods, uid)
	kept := b.uids[:0]
	for _, known := range b.uids {
		if known != uid {
			kept = append(kept, known)
		}
	}
	b.uids = kept
}

// all are the pods, ended ones included.
func (b *podBook) all() []*v1.Pod {
	return b.those(func(*v1.Pod) bool { return true })
}

// active are the pods that have not ended; one that is being admitted is active.
func (b *podBook) active() []*v1.Pod {
	return b.those(active)
}

func (b *podBook) those(wanted func(*v1.Pod) bool) []*v1.Pod {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	pods := make([]*v1.Pod, 0, len(b.uids))
	for _, uid := range b.uids {
		if wanted(b.pods[uid]) {
			pods = append(pods, b.pods[uid])
		}
	}
	return pods
}

func active(pod *v1.Pod) bool {
	return pod.Status.Phase != v1.PodSucceeded && pod.Status.Phase != v1.PodFailed
}
