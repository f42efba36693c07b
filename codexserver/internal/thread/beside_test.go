package thread_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/codexmcp/codexmcp/codexserver"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/internal/box/boxtest"
	"github.com/codexmcp/codexmcp/codexserver/internal/servertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/internal/testenv"
)

// resolver is an engine that finds folders by name. A turn with the prompt "wait" runs for a minute, and what one with the
// prompt "leave" left runs for a minute.
type resolver struct{ n, ran atomic.Int64 }

type resolverConversation struct {
	of              *resolver
	id, cwd, prompt string
	host            engine.Host
}

func (r *resolver) Start(_ context.Context, cfg protocol.Config, h engine.Host) (engine.Conversation, error) {
	c := &resolverConversation{of: r, id: fmt.Sprint(r.n.Add(1)), cwd: cfg.Cwd, host: h}
	access := protocol.Access{Folder: cfg.Cwd}
	if cfg.Sandbox == protocol.SandboxWorkspaceWrite {
		access.Mode = cfg.Sandbox
	}
	h.Emit(protocol.SessionConfigured{SessionID: c.id, Cwd: cfg.Cwd, Access: access})
	return c, nil
}
func (c *resolverConversation) ID() string       { return c.id }
func (c *resolverConversation) Close() error     { return nil }
func (c *resolverConversation) Writes() []string { return []string{c.cwd} }
func (c *resolverConversation) Rest(then func()) {
	if c.prompt == "leave" {
		time.AfterFunc(time.Minute, then)
		return
	}
	then()
}
func (c *resolverConversation) Turn(ctx context.Context, in protocol.TurnInput) error {
	if c.prompt = protocol.TextOf(in.Items); c.prompt == "wait" {
		time.Sleep(time.Minute)
	}
	if c.prompt == "go" || c.prompt == "again" {
		c.of.ran.Add(1)
	}
	return nil
}

// TestBeside begins turns while another one runs, or what it left.
func TestBeside(t *testing.T) {
	testenv.NeedsLinks(t)
	top := boxtest.Folder(t)
	boxtest.Lay(t, top, "repo/sub/", "repo/other/")
	at := func(name string) string { return filepath.Join(top, name) }
	for _, tt := range []struct {
		first, prompt, second, sandbox string
		access                         setting.FullAccess
		answer                         string
		asked                          int
		ran                            bool
	}{
		{"repo/sub", "wait", "repo", "workspace-write", "", servertest.Decline, 1, false},
		{"repo", "wait", "repo/sub", "workspace-write", "", servertest.Decline, 1, false},
		{"repo/sub", "leave", "repo", "workspace-write", "", servertest.Decline, 1, false},
		{"repo/sub", "wait", "repo", "workspace-write", "", servertest.Accept, 1, true},
		{"repo/sub", "wait", "repo", "workspace-write", setting.FullAccessAllow, servertest.Decline, 0, true},
		{"repo/sub", "wait", "repo", "workspace-write", setting.FullAccessDeny, servertest.Accept, 0, false},
		{"repo/sub", "end", "repo", "workspace-write", "", servertest.Decline, 0, true},
		{"repo/sub", "wait", "repo/other", "workspace-write", "", servertest.Decline, 0, true},
		{"repo", "wait", "repo", "workspace-write", "", servertest.Decline, 0, true},
		{"repo/sub", "wait", "repo", "read-only", "", servertest.Decline, 0, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			o := &codexserver.Options{Folder: at("repo"), Calls: codexserver.CallOptions{Folders: []string{at("repo")}, FullAccess: tt.access}}
			e := &resolver{}
			c := servertest.Connect(t, codexserver.New(e, o), servertest.After(2*time.Second, tt.answer))
			call := func(prompt, cwd, sandbox string) servertest.Result {
				got, err := c.Tool(t.Context(), "codex", map[string]any{"prompt": prompt, "cwd": at(cwd), "sandbox": sandbox})
				if err != nil {
					t.Error(err)
				}
				return got
			}
			done := make(chan servertest.Result)
			go func() { done <- call(tt.prompt, tt.first, "workspace-write") }()
			if tt.prompt != "wait" {
				<-done
			}
			synctest.Wait()
			got := call("go", tt.second, tt.sandbox)
			if n := len(c.Received("elicitation/create")); n != tt.asked || (e.ran.Load() == 1) != tt.ran {
				t.Errorf("%+v: %d questions, %s", tt, n, got.Content)
			}
			if tt.asked > 0 && (!strings.Contains(asked(c), "`"+at("repo")+"`") || !strings.Contains(asked(c), "`"+at("repo/sub")+"`") || !strings.Contains(asked(c), "worktree: true")) {
				t.Errorf("asked %q", asked(c))
			}
			if !tt.ran && !strings.Contains(got.Content, "worktree: true") {
				t.Errorf("%+v: %s", tt, got.Content)
			}
			if tt.answer == servertest.Accept && tt.ran { // once for the two
				again, err := c.Tool(t.Context(), "codex-reply", map[string]any{"prompt": "again", "threadId": got.Thread})
				if n := len(c.Received("elicitation/create")); n != tt.asked || err != nil || e.ran.Load() != 2 {
					t.Errorf("again: %d questions, %s, %v", n, again.Content, err)
				}
			}
			if tt.prompt == "wait" {
				<-done
			}
			time.Sleep(time.Minute)
		})
	}
}

// TestDay has two conversations at a time in a repository with many folders, and others one after another: in the same folder, in
// siblings, and in folders above and below those of turns that have ended. Nothing is asked.
func TestDay(t *testing.T) {
	testenv.NeedsLinks(t)
	top := boxtest.Folder(t)
	synctest.Test(t, func(t *testing.T) {
		o := &codexserver.Options{Folder: top, Home: filepath.Join(top, "home"), Calls: codexserver.CallOptions{Folders: []string{top}}}
		e := &resolver{}
		c := servertest.Connect(t, codexserver.New(e, o), servertest.After(2*time.Second, servertest.Decline))
		for i := range 20 {
			folders := []string{fmt.Sprint("repo/", i, "/a"), fmt.Sprint("repo/", i, "/b")}
			boxtest.Lay(t, top, folders[0]+"/", folders[1]+"/")
			for _, beside := range [][]string{folders, {folders[0], folders[0]}, {fmt.Sprint("repo/", i)}, {"repo"}, {folders[0]}} {
				var all sync.WaitGroup
				for _, folder := range beside {
					all.Go(func() {
						_, err := c.Tool(t.Context(), "codex", map[string]any{"prompt": "wait", "cwd": filepath.Join(top, folder), "sandbox": "workspace-write"})
						if err != nil {
							t.Error(err)
						}
					})
				}
				all.Wait()
			}
		}
		if n := len(c.Received("elicitation/create")); n > 0 || e.n.Load() != 20*7 {
			t.Errorf("%d questions in %d turns", n, e.n.Load())
		}
	})
}
