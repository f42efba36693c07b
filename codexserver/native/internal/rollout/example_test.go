package rollout_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/codexmcp/codexmcp/codexserver/native/internal/rollout"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// A conversation that a server wrote can be read by the next one, also if its last line is torn.
func Example() {
	home, err := os.MkdirTemp("", "home")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(home)
	path := filepath.Join(home, "rollout.jsonl")
	w, err := rollout.Create(path, protocol.SessionMeta{ID: "0199a213-81c0-7800-8aa1-bbab2a035a53", Cwd: "/work"}, nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, said := range []string{"first", "second"} {
		if err := w.Event(protocol.AgentMessage{Message: said}); err != nil {
			fmt.Println(err)
		}
	}
	w.Close()
	info, _ := os.Stat(path)
	os.Truncate(path, info.Size()-5)
	r, err := rollout.Load(path)
	fmt.Println(err, r.Meta.Cwd, len(r.Events), r.Skipped)
	// Output:
	// <nil> /work 1 1
}
