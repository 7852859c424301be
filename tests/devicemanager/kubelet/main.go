// Kubelet's own device manager and topology manager, driven by JSON lines.
//
// One process is one run of kubelet, from its start to its stop or death: what a real kubelet loses when it ends is
// lost here too, and what it keeps is the checkpoint. The pods and the Node object belong to the API server, so whoever
// drives this program keeps them and passes them to the next run. Each line on standard input is a request
// {"id": 1, "do": "admit", "with": {...}}, each line on standard output the answer to one, in the order in which they
// are ready: {"id": 1, "ok": {...}} or {"id": 1, "error": "..."}. Kubelet's log goes to standard error. The program ends
// with its standard input.
//
// The device manager's directory is fixed, /var/lib/kubelet/device-plugins: run it in a mount namespace of its own in
// which that is some directory of the caller's.
package main

import (
	"context"
	"flag"
	"os"

	"k8s.io/klog/v2"
)

func main() {
	klog.InitFlags(nil)
	flag.Parse()
	logger := klog.Background()
	ctx := klog.NewContext(context.Background(), logger)
	if err := newConversation(os.Stdin, os.Stdout).run(commands(ctx)); err != nil {
		logger.Error(err, "The conversation broke off")
		os.Exit(1)
	}
}
