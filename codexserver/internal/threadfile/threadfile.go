// Package threadfile keeps what calls chose for a conversation, from before a client learns its id, where the file of its
// engine does not have it. So an hour without a turn, a kill and a restart change nothing of it.
//
// Each conversation has a file in codex-mcp/threads below the home, where commands do not write. Each change replaces the
// whole file. Without one the conversation has what it began with.
package threadfile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/internal/lazyregexp"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/go-json-experiment/json"
)

const (
	// maxFiles is how many conversations are kept. The oldest are removed, an eighth of them at a time; each further
	// process may add an eighth before that.
	maxFiles = 4096
	// maxFile is how long a file may be, in bytes.
	maxFile = 1 << 20
)

// Thread is what is kept of a conversation. Unknown members of a file are left out.
type Thread struct {
	// ID is the id of the conversation: letters, digits and hyphens.
	ID string `json:"id"`
	protocol.Kept
	// Formed is nil unless the last turn in the engine's file is one for the form of an answer, which had less.
	Formed *Formed `json:"formed,omitzero"`
}

// Formed is what a conversation has, while the last turn in its engine's file does not say it.
type Formed struct {
	Policy  protocol.ApprovalPolicy  `json:"approval_policy"`
	Sandbox protocol.SandboxPolicy   `json:"sandbox_policy"`
	Effort  protocol.ReasoningEffort `json:"effort,omitzero"`
}

// Wish gives the call that resumes the conversation what earlier calls chose and it leaves open, but for the web search,
// which is access: that is returned, nil if nothing is wished. A nil Thread wishes nothing.
func (t *Thread) Wish(cfg *protocol.Config) (search *bool) {
	if t == nil {
		return nil
	}
	own, keys := cfg.WebSearch, protocol.ChoiceKeys()["web-search"]
	cfg.Choices = cfg.Chosen().Over(t.Choices)
	cfg.WebSearch = own
	if own != nil || slices.ContainsFunc(keys, func(key string) bool { return config.Chooses(cfg.Overrides, key) }) {
		return nil
	}
	return t.Choices.WebSearch
}

// Limit takes from g what the conversation does not have. A policy or a sandbox that a later call chooses itself stays. Of the
// policies untrusted alone, which asks about each command, is stricter than another. A nil Thread takes nothing.
func (t *Thread) Limit(g *decide.Grant, policyChosen, sandboxChosen bool) {
	if t == nil {
		return
	}
	policy := g.Policy
	if !sandboxChosen {
		g.Narrow(&decide.Grant{Sandbox: t.Sandbox})
	}
	if g.Policy = policy; !policyChosen && t.Policy == protocol.ApprovalUntrusted {
		g.Policy = t.Policy
	}
}

// ids matches the ids of conversations.
var ids = lazyregexp.Regexp{Text: `^[0-9A-Za-z-]{1,64}$`}

// Store has the files of a home. It is safe for concurrent use, also by several processes.
type Store struct {
	dir    string
	mirror safefile.Mirror
	most   int
	puts   atomic.Int64
}

// New returns the store of a home. It does not read or write files. The mirror, unless nil, also keeps the files: each
// change is there before it is in the file.
func New(home string, mirror safefile.Mirror) *Store {
	return &Store{dir: filepath.Join(home, "codex-mcp", "threads"), mirror: safefile.MirrorOf(mirror), most: maxFiles}
}

// Put keeps t in place of what was kept of its conversation. The error says that nothing may start, and names the file.
func (s *Store) Put(t *Thread) error {
	path, _, err := s.read(t.ID) // else a link would be followed
	var data []byte
	if err == nil {
		data, err = json.Marshal(t)
	}
	if len(data) > maxFile {
		err = &safefile.SizeError{Path: path, Max: maxFile}
	}
	if err == nil {
		s.sweep()
		err = s.mirror.Put(path, data)
	}
	if err == nil {
		err = safefile.Write(path, data, 0o600)
	}
	if err != nil {
		return fmt.Errorf("nothing was started: what the call chose for the conversation cannot be kept in %s: %w",
			path, err)
	}
	return nil
}

// Get returns what is kept of a conversation, which began with what its engine's file has; nil is nothing. The error
// says that nothing may start, because it is not known what a call chose, and names the file.
func (s *Store) Get(id string, began *protocol.Kept) (*Thread, error) {
	path, data, err := s.read(id)
	if err == nil && data == nil && began == nil {
		return nil, nil
	}
	t := &Thread{}
	if err == nil && data != nil {
		err = json.Unmarshal(data, t)
	} else if err == nil {
		t = &Thread{ID: id, Kept: *began}
	}
	if err == nil && !strings.EqualFold(t.ID, id) {
		err = fmt.Errorf("member id: %.100q is another conversation", t.ID)
	}
	if err == nil {
		err = known(t.Policy, t.Sandbox.Mode)
	}
	if err == nil && t.Formed != nil {
		err = known(t.Formed.Policy, t.Formed.Sandbox.Mode)
	}
	if err != nil {
		return nil, fmt.Errorf("nothing was started: what a call chose for the conversation cannot be read from %s: "+
			"%w; without the file this choice does not count", path, err)
	}
	return t, nil
}

// known returns an error for a policy or a mode that is unknown.
func known(policy protocol.ApprovalPolicy, mode protocol.SandboxMode) error {
	switch {
	case policy == "" || !slices.Contains(protocol.ApprovalPolicies(), policy) && policy[0] != '{':
		return fmt.Errorf("member approval_policy: %.100q is unknown", policy)
	case decide.Width(mode) < 0:
		return fmt.Errorf("member sandbox_policy: the mode %.100q is unknown", mode)
	}
	return nil
}

// read returns the path and the content of a conversation's file, nil without one. It fails if the store cannot have
// written it.
func (s *Store) read(id string) (path string, data []byte, err error) {
	path = filepath.Join(s.dir, strings.ToLower(id)+".json")
	if !ids.Get().MatchString(id) {
		return s.dir, nil, fmt.Errorf("%.100q is not the id of a conversation", id)
	}
	data, err = safefile.ReadSecret(path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return path, nil, nil
	}
	return path, data, err
}

// sweep makes room for an eighth of the files, and is done once for as many changes: to list a full folder costs as much as
// a turn. What it cannot remove stays until the next time.
func (s *Store) sweep() {
	room := s.most / 8
	if s.puts.Add(1)%int64(room) != 1 {
		return
	}
	entries, _ := os.ReadDir(s.dir)
	if len(entries) <= s.most-room {
		return
	}
	ages := map[string]time.Time{}
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil { // or another process has removed it
			ages[entry.Name()] = info.ModTime()
		}
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return ages[a.Name()].Compare(ages[b.Name()]) })
	for _, entry := range entries[:len(entries)-s.most+room+1] {
		if path := filepath.Join(s.dir, entry.Name()); s.mirror.Delete(path) == nil {
			_ = os.Remove(path)
		}
	}
}
