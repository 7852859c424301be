package main

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"
)

// nothing is the input or the result of a command that has none.
type nothing struct{}

type waitRequest struct {
	Resource string  `json:"resource"`
	AtLeast  int64   `json:"at_least"`
	Seconds  float64 `json:"seconds"`
}

type admitRequest struct {
	Pod podSpec `json:"pod"`
	Now float64 `json:"now"`
}

type endRequest struct {
	UID     string `json:"uid"`
	Deleted bool   `json:"deleted"`
}

type timeRequest struct {
	Now float64 `json:"now"`
}

type podRequest struct {
	UID string `json:"uid"`
}

// commands are what the program can be asked for; all but the first need a kubelet that has been started.
func commands(ctx context.Context) map[string]handler {
	var running atomic.Pointer[kubelet]
	return map[string]handler{
		"start": command(func(with settings) (nothing, error) {
			if running.Load() != nil {
				return nothing{}, errors.New("kubelet has been started already; another run is another process")
			}
			k, err := start(ctx, with)
			if err == nil {
				running.Store(k)
			}
			return nothing{}, err
		}),
		"stop": onKubelet(&running, func(k *kubelet, _ nothing) (nothing, error) {
			return nothing{}, k.devices.Stop(klog.FromContext(k.ctx))
		}),
		"sources_ready": onKubelet(&running, func(k *kubelet, _ nothing) (nothing, error) {
			k.sources.ready.Store(true)
			return nothing{}, nil
		}),
		"wait_for": onKubelet(&running, func(k *kubelet, in waitRequest) (nothing, error) {
			patience := time.Duration(in.Seconds * float64(time.Second))
			return nothing{}, k.waitFor(in.Resource, in.AtLeast, patience)
		}),
		"quantities": onKubelet(&running, func(k *kubelet, _ nothing) (nodeQuantities, error) {
			capacity, allocatable, _ := quantities(klog.FromContext(k.ctx), k.devices)
			return nodeQuantities{amounts(capacity), amounts(allocatable)}, nil
		}),
		"node": onKubelet(&running, func(k *kubelet, in timeRequest) (nodeQuantities, error) {
			node := k.node.at(in.Now)
			return nodeQuantities{amounts(node.Status.Capacity), amounts(node.Status.Allocatable)}, nil
		}),
		"admit": onKubelet(&running, func(k *kubelet, in admitRequest) (verdict, error) {
			return k.admit(in.Pod, in.Now), nil
		}),
		"end": onKubelet(&running, func(k *kubelet, in endRequest) (nothing, error) {
			return nothing{}, k.end(in.UID, in.Deleted)
		}),
		"device_ids": onKubelet(&running, func(k *kubelet, in podRequest) (map[string]map[string][]string, error) {
			return k.deviceIDs(in.UID)
		}),
		"start_container": onKubelet(&running, func(k *kubelet, in containerName) (runOptions, error) {
			return k.startContainer(in.PodUID, in.Container)
		}),
		"write_status": onKubelet(&running, func(k *kubelet, in podRequest) (nothing, error) {
			pod, err := k.pods.find(in.UID)
			if err == nil {
				k.statuses.write(pod)
			}
			return nothing{}, err
		}),
		"device_health": onKubelet(&running, func(k *kubelet, in podRequest) (map[string]health, error) {
			return k.statuses.of(in.UID), nil
		}),
	}
}

// onKubelet makes a command of a method of the running kubelet.
func onKubelet[In, Out any](running *atomic.Pointer[kubelet], do func(*kubelet, In) (Out, error)) handler {
	return command(func(in In) (Out, error) {
		k := running.Load()
		if k == nil {
			var none Out
			return none, errors.New("kubelet has not been started")
		}
		return do(k, in)
	})
}
