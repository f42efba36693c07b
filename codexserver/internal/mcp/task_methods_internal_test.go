package mcp

import (
	stdjson "encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/approve"
	"github.com/codexmcp/codexmcp/codexserver/internal/mcp/taskfile"
	"github.com/codexmcp/codexmcp/codexserver/internal/thread"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/jsonrpc"
)

// TestManyUnknownTasks asks for more unknown tasks than may be looked up at a time, while no
// file can be read.
func TestManyUnknownTasks(t *testing.T) {
	tasks := NewTasks(taskfile.New(t.TempDir(), nil), setting.Tasks{}, nil)
	threads := thread.NewTable(nil, &approve.Options{}).Share("")
	s := (&Server{Tasks: tasks, Logger: slog.New(slog.DiscardHandler)}).NewSession(t.Context(), threads, nil)
	ours, theirs := jsonrpc.Pipe()
	peer := s.Peer(theirs, s.Handler(true), jsonrpc.Hooks{})
	served := make(chan error, 1)
	go func() { served <- peer.Run(t.Context()) }()
	for range maxReads {
		s.reads <- struct{}{}
	}
	const more = 10
	for id := range maxLong + more {
		line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tasks/get","params":{"taskId":"unknown","_meta":{`+
			`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{%q:{}}}}}}`, id, extensionTasks)
		if err := ours.Write(t.Context(), [][]byte{[]byte(line)}); err != nil {
			t.Fatal(err)
		}
	}
	for n := range maxLong + more {
		if n == more {
			for range maxReads {
				<-s.reads
			}
		}
		line, err := ours.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			ID    int
			Error *jsonrpc.Error
		}
		if err := stdjson.Unmarshal(line, &answer); err != nil {
			t.Fatal(err)
		}
		want := "no such task"
		if answer.ID >= maxLong {
			want = "requests are under way"
		}
		if answer.Error == nil || !strings.Contains(answer.Error.Message, want) || n < more != (answer.ID >= maxLong) {
			t.Fatalf("answer %d: %s, want %q", n, line, want)
		}
	}
	if err := ours.Close(); err != nil {
		t.Error(err)
	}
	if err := <-served; err != nil {
		t.Error(err)
	}
	s.running.Wait()
	if n := s.open.n.Load(); n != 0 {
		t.Errorf("%d requests count as open", n)
	}
}

// TestTaskLimit counts the tasks of each principal for itself, and forgets those who have none.
func TestTaskLimit(t *testing.T) {
	tasks := NewTasks(taskfile.New(t.TempDir(), nil), setting.Tasks{Limit: 2}, nil)
	for n, tt := range []struct {
		principal string
		leaves    bool
		err       bool
	}{
		{"ann", false, false}, {"ann", false, false}, {"ann", false, true}, {"bob", false, false}, {"ann", true, false}, {"ann", false, false},
		{"ann", false, true}, {"bob", true, false}, {"ann", true, false}, {"ann", true, false},
	} {
		if tt.leaves {
			tasks.leave(tt.principal)
		} else if err := tasks.enter(tt.principal); (err != nil) != tt.err {
			t.Errorf("%d: %s: %v", n, tt.principal, err)
		}
	}
	if len(tasks.calls) > 0 {
		t.Errorf("left are %v", tasks.calls)
	}
}
