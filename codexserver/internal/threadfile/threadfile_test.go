package threadfile

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/internal/worker/workertest"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

const id = "0199a2b3-0000-7000-8000-00000000000a"

func thread(id string) *Thread {
	return &Thread{ID: id, Kept: protocol.Kept{
		Policy: protocol.ApprovalUntrusted, Choices: protocol.Choices{WebSearch: new(false)},
		Sandbox: protocol.SandboxPolicy{Mode: protocol.SandboxWorkspaceWrite, WritableRoots: []string{"/a"}, NetworkAccess: true, ExcludeSlashTmp: true},
	}}
}

// TestStore puts, replaces and gets what is kept of conversations.
func TestStore(t *testing.T) {
	home := t.TempDir()
	s := New(home, nil)
	if got, err := s.Get(id, nil); got != nil || err != nil {
		t.Errorf("before there is a folder: %v, %v", got, err)
	}
	must.OK(t, s.Put(thread(id)))
	second := thread(id)
	second.Policy = `{"granular":{"rules":true}}`
	must.OK(t, s.Put(second))
	got := must.Get(New(home, nil).Get(strings.ToUpper(id), nil))(t)
	must.Equal(t, "kept", second, got)
	if got, err := s.Get("0199a2b3-0000-7000-8000-00000000000b", nil); got != nil || err != nil {
		t.Errorf("another conversation: %v, %v", got, err)
	}
	for _, bad := range []string{"", "../rules", "a/b", `a\b`, "a.b", strings.Repeat("a", 65)} {
		_, err := s.Get(bad, nil)
		if put := s.Put(thread(bad)); err == nil || put == nil {
			t.Errorf("the id %q is allowed: %v, %v", bad, err, put)
		}
	}
}

// TestSweep puts more than are kept: the oldest go, from the mirror, too.
func TestSweep(t *testing.T) {
	home, disk := t.TempDir(), t.TempDir()
	m, _ := workertest.Mirror(t, home, disk, 1)
	s := New(home, m)
	s.most = 16
	for i := range 40 {
		must.OK(t, s.Put(thread(fmt.Sprint("thread-", i))))
		at := time.Now().Add(time.Duration(i-100) * time.Minute)
		must.OK(t, os.Chtimes(filepath.Join(s.dir, fmt.Sprintf("thread-%d.json", i)), at, at))
		for _, dir := range []string{s.dir, filepath.Join(disk, "codex-mcp", "threads")} {
			if entries := must.Get(os.ReadDir(dir))(t); len(entries) > s.most || i > 16 && len(entries) < s.most-2 {
				t.Fatalf("%s has %d files after %d", dir, len(entries), i+1)
			}
		}
	}
	if got := must.Get(s.Get("thread-0", nil))(t); got != nil {
		t.Error("the oldest is kept")
	}
	for i := 27; i < 40; i++ {
		if got := must.Get(s.Get(fmt.Sprint("thread-", i), nil))(t); got == nil {
			t.Errorf("thread %d is not kept", i)
		}
	}
}

// TestLimit takes from what a configuration gives what a conversation does not have.
func TestLimit(t *testing.T) {
	full := decide.Grant{Policy: protocol.ApprovalNever, Sandbox: protocol.SandboxPolicy{Mode: protocol.SandboxDangerFullAccess}}
	for name, tt := range map[string]struct {
		kept            *Thread
		policy, sandbox bool
		want            decide.Grant
	}{
		"nothing is kept":       {nil, false, false, full},
		"all":                   {thread(id), false, false, decide.Grant{Policy: protocol.ApprovalUntrusted, Sandbox: thread(id).Sandbox}},
		"the policy is chosen":  {thread(id), true, false, decide.Grant{Policy: protocol.ApprovalNever, Sandbox: thread(id).Sandbox}},
		"the sandbox is chosen": {thread(id), false, true, decide.Grant{Policy: protocol.ApprovalUntrusted, Sandbox: full.Sandbox}},
		"both are chosen":       {thread(id), true, true, full},
	} {
		g := full
		tt.kept.Limit(&g, tt.policy, tt.sandbox)
		must.Equal(t, name, tt.want, g)
	}
}

// TestWish gives a call what earlier ones chose and it leaves open, and says which web search they wished.
func TestWish(t *testing.T) {
	kept := thread(id)
	kept.Choices = protocol.Choices{DeveloperInstructions: new("kept"), Effort: "low", WebSearch: new(true)}
	for name, tt := range map[string]struct {
		call      protocol.Config
		developer string
		search    bool
	}{
		"nothing":               {protocol.Config{}, "kept", true},
		"an argument":           {protocol.Config{Choices: protocol.Choices{DeveloperInstructions: new("")}}, "", true},
		"a key":                 {protocol.Config{Overrides: protocol.Overrides{"developer_instructions": "key"}}, "key", true},
		"a key of another type": {protocol.Config{Overrides: protocol.Overrides{"developer_instructions": 1}}, "kept", true},
		"a search":              {protocol.Config{Choices: protocol.Choices{WebSearch: new(false)}}, "kept", false},
		"a search by a key":     {protocol.Config{Overrides: protocol.Overrides{"tools.web_search": false}}, "kept", false},
	} {
		search, own := kept.Wish(&tt.call), tt.call.WebSearch
		if c := tt.call.Choices; *c.DeveloperInstructions != tt.developer || c.Effort != "low" || (search != nil) != tt.search || own != nil && *own {
			t.Errorf("%s: %+v, %v", name, c, search)
		}
	}
	var none protocol.Config
	if (*Thread)(nil).Wish(&none) != nil || none.Choices != (protocol.Choices{}) {
		t.Errorf("nothing is kept, and wished is %+v", none)
	}
}
