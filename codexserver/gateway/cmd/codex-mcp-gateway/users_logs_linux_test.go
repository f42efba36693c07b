package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestEndToEndUsersLogs looks at what a real worker has open while it runs a turn. A taken-over worker
// could read, empty and forge the lines of all users in a log that it has, so it has none.
func TestEndToEndUsersLogs(t *testing.T) {
	model, held := waiting(t)
	trace := filepath.Join(t.TempDir(), "trace")
	u := startUsers(t, model, "", "--trace", trace)
	call := u.begin("ann", model, 1)
	pid := u.workers()["ann"]
	if pid == 0 {
		t.Fatal("ann has no worker")
	}
	var logs []os.FileInfo
	for _, path := range []string{trace, u.f.cwd + "/approvals"} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		logs = append(logs, info)
	}
	processes := []string{fmt.Sprint(pid)} // the worker is a child of the process that encloses it
	for i := 0; i < len(processes); i++ {
		out, _ := exec.Command("pgrep", "-P", processes[i]).Output() // its error means that there is none
		processes = append(processes, strings.Fields(string(out))...)
	}
	for _, process := range processes {
		descriptors, err := filepath.Glob("/proc/" + process + "/fd/*")
		if err != nil || len(descriptors) < 3 {
			t.Fatal(descriptors, err)
		}
		for _, d := range descriptors {
			info, err := os.Stat(d) // it may have been closed
			for _, log := range logs {
				if err == nil && os.SameFile(info, log) {
					t.Errorf("process %s has %s", process, log.Name())
				}
			}
		}
	}
	if len(processes) < 2 {
		t.Errorf("only %v: the worker was not looked at", processes)
	}
	close(held)
	if got := u.receive(call); got.status != 200 {
		t.Error(got)
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		text, err := os.ReadFile(trace)
		if err == nil && strings.Contains(string(text), " ann > ") {
			break // the gateway wrote it for the worker
		}
		if time.Now().After(deadline) {
			t.Fatalf("the trace has no message of ann: %v\n%s", err, text)
		}
	}
}
