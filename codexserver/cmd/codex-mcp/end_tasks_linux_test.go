package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
)

// TestEndToEndTasksOfAnEndedServer ends the server in each orderly way while tasks wait for the
// model and for an approval. The next server finds these tasks ended.
func TestEndToEndTasksOfAnEndedServer(t *testing.T) {
	for name, end := range map[string]func(s *mortal){
		"EOF":  func(s *mortal) { _ = s.in.Close() },
		"TERM": func(s *mortal) { _ = s.cmd.Process.Signal(syscall.SIGTERM) },
		"HUP":  func(s *mortal) { _ = s.cmd.Process.Signal(syscall.SIGHUP) },
		"INT, TERM": func(s *mortal) {
			_ = s.cmd.Process.Signal(syscall.SIGINT)
			_ = s.cmd.Process.Signal(syscall.SIGTERM)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFolders(t)
			model := providertest.New(
				providertest.Turn{Match: "wait", Wait: make(chan struct{})},
				providertest.Call(providertest.Shell("c", "touch", "made")))
			t.Cleanup(model.Close)
			writeConfig(t, f.home, fmt.Sprintf(configOf, model.BaseURL()))
			k := &killer{t: t, f: f}
			s := k.start()
			var tasks []taskView
			for _, prompt := range []string{"wait", "ask"} {
				v, ok := s.call("tools/call", fmt.Sprintf(`"name":"codex","arguments":{"prompt":%q,"approval-policy":"untrusted"},%s`, prompt, pollingClient))
				if !ok || v.TaskID == "" {
					t.Fatalf("%+v", v)
				}
				tasks = append(tasks, v)
			}
			end(s)
			<-s.ends
			_ = s.cmd.Wait()
			s = k.start()
			for _, task := range tasks {
				v, ok := s.call("tasks/get", fmt.Sprintf(`"taskId":%q,%s`, task.TaskID, pollingClient))
				if !ok || v.Status != "completed" || v.Message != "ended with an error" || !strings.Contains(string(v.Result), `"isError":true`) {
					t.Errorf("%s: %s\n%s", v.Status, v.Message, v.Result)
				}
			}
			s.kill()
			if _, err := os.Stat(filepath.Join(f.cwd, "made")); err == nil {
				t.Error("the command ran")
			}
		})
	}
}
