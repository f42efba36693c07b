//go:build unix

package native_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/native"
	"github.com/codexmcp/codexmcp/codexserver/native/providertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/google/go-cmp/cmp"
)

// TestSafeCallsRunSideBySide reads two named pipes, the first of which is only
// written to when the second was read: one after the other they would wait for
// ever. Their events come in the order of the calls all the same.
func TestSafeCallsRunSideBySide(t *testing.T) {
	b := setup(t, "", native.Limits{},
		providertest.Call(providertest.Shell("c1", "cat", "a"), providertest.Shell("c2", "cat", "b")),
		providertest.Say("done"))
	for _, name := range []string{"a", "b"} {
		if err := syscall.Mkfifo(filepath.Join(b.cwd, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	written := make(chan error, 1)
	go func() {
		err := os.WriteFile(filepath.Join(b.cwd, "b"), []byte("second"), 0)
		if err == nil {
			err = os.WriteFile(filepath.Join(b.cwd, "a"), []byte("first"), 0)
		}
		written <- err
	}()
	h := &host{}
	if err := b.start(t, h, protocol.Config{}).Turn(t.Context(), protocol.TurnInput{Items: protocol.TextInput("read")}); err != nil {
		t.Fatal(err)
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range h.events {
		switch m := m.(type) {
		case protocol.ExecCommandBegin:
			got = append(got, "begin "+m.CallID)
		case protocol.ExecCommandEnd:
			got = append(got, "end "+m.CallID+" "+m.Stdout)
		}
	}
	if diff := cmp.Diff([]string{"begin c1", "end c1 first", "begin c2", "end c2 second"}, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	last := string(b.provider.Requests()[1].Body)
	if first, second := strings.Index(last, "first"), strings.Index(last, "second"); first < 0 || second < first {
		t.Errorf("the outputs stand at %d and %d", first, second)
	}
}
