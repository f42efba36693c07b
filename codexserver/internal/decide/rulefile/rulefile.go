// Package rulefile keeps the rules that people accepted, in one file of a home.
//
//	$CODEX_HOME/codex-mcp/rules.json
//
// A rule lets commands run in the sandbox, and never outside. Nobody but [Store.Add] and
// [Store.Remove] writes the file. A file that cannot be read whole allows nothing.
//
// The package is separate because codex-mcp rules reads the file without a server.
package rulefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/codexserver/internal/decide"
	"github.com/codexmcp/codexmcp/internal/claim"
	"github.com/codexmcp/codexmcp/internal/safefile"
	"github.com/codexmcp/codexmcp/internal/shellword"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Kept is a rule that a person accepted.
type Kept struct {
	// Number names the rule in the file.
	Number int `json:"number"`
	Rule
	// At is when, and By who accepted it: a decider of package approval, with the
	// principal if a server has several users, or [ByCommand].
	At        time.Time `json:"at"`
	By        string    `json:"by"`
	Principal string    `json:"principal,omitzero"`
}

// ByCommand is who accepted a rule that a person wrote with codex-mcp rules add.
const ByCommand = "command"

type Options struct {
	// Writable returns the folders that commands were able to write at any time. If the file
	// lies in one, nothing is allowed by it, and nothing is added. Default: none.
	Writable func() []string
	// Mirror also keeps the rules. Each change is there before it is in the file. Default: they are only a file.
	Mirror safefile.Mirror
}

// Store keeps the rules of a home, for several processes at a time. It has none in memory, so a removed one is gone.
type Store struct {
	path    string
	options Options
}

// New returns the store of a home. It does not read or write files.
func New(home string, o *Options) *Store {
	s := &Store{path: filepath.Join(home, "codex-mcp", "rules.json")}
	if o != nil {
		s.options = *o
	}
	return s
}

func (s *Store) Path() string { return s.path }

type content struct {
	Version int    `json:"version"`
	Rules   []Kept `json:"rules"` // in the order of their numbers
}

const (
	version  = 3
	maxFile  = 1 << 20
	maxRules = 1000
)

// List returns the rules, the oldest first. A missing file has none.
func (s *Store) List() ([]Kept, error) {
	data, err := safefile.ReadSecret(s.path, maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = s.isOurs()
	}
	if err != nil {
		return nil, err
	}
	c, err := decode(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	return c.Rules, nil
}

// isOurs returns an error if commands were able to write the file, or other users can.
func (s *Store) isOurs() error {
	folder := filepath.Dir(s.path)
	switch info, err := os.Stat(folder); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !safefile.IsOwn(info):
		return fmt.Errorf("%s: other users can write in its folder, so that another file can take its place: run %s",
			s.path, shellword.Show(runtime.GOOS, "chmod", "go-w", folder))
	}
	if s.options.Writable != nil && box.Reaches(filepath.Dir(s.path), s.options.Writable()...) {
		return fmt.Errorf("%s: commands can write this file", s.path)
	}
	return nil
}

// decode decodes the file. A rule with an unknown member may be narrower than it looks, so it makes the file unusable.
func decode(data []byte) (content, error) {
	var c content
	err := json.Unmarshal(data, &c, json.RejectUnknownMembers(true))
	if v := c.Version; v != version && (err == nil || v != 0) {
		return content{}, fmt.Errorf("its version is %d, and this program reads version %d: remove the file",
			v, version)
	}
	if err != nil {
		return content{}, err
	}
	last := 0
	for _, k := range c.Rules {
		err := k.check()
		switch {
		case k.Number <= last:
			return content{}, fmt.Errorf("the number %d of a rule is not in order", k.Number)
		case err != nil:
			return content{}, fmt.Errorf("rule %d: %w", k.Number, err)
		case k.By == "" || k.At.IsZero():
			return content{}, fmt.Errorf("rule %d does not say who accepted it and when", k.Number)
		}
		last = k.Number
	}
	return c, nil
}

// Allows reports whether the rules of a principal allow a command in the sandbox, or let commands in the sandbox reach
// a host. By is the number of the rule, 0 if several rules together allow a script. An error means that nothing is
// allowed, and why. A nil store allows nothing.
func (s *Store) Allows(a Action, principal string) (by int, ok bool, err error) {
	if s == nil || a.isZero() {
		return 0, false, nil
	}
	exact, lost := exactly(a)
	kept, err := s.List()
	kept = slices.DeleteFunc(kept, func(k Kept) bool { return k.Principal != principal })
	commands, plain := decide.Commands(a.Command)
	var used []int
	for _, k := range kept {
		if lost == nil && k.equal(exact) {
			return k.Number, true, nil
		}
		left := len(commands)
		covered := func(argv []string) bool { return decide.Begins(k.Prefix, argv) }
		if commands = slices.DeleteFunc(commands, covered); len(commands) < left {
			used = append(used, k.Number)
		}
	}
	switch {
	case !plain || len(commands) > 0 || len(used) == 0:
		return 0, false, err
	case len(used) == 1:
		by = used[0]
	}
	return by, true, nil
}

// Add adds a rule that a person accepted, unless it is there already, and returns it with its number and time.
func (s *Store) Add(k Kept) (Kept, error) {
	if k.By == "" {
		return Kept{}, errors.New("a rule needs who accepted it")
	}
	if err := k.check(); err != nil {
		return Kept{}, err
	}
	err := s.change(func(rules []Kept) ([]Kept, error) {
		same := func(old Kept) bool { return old.equal(k.Rule) && old.Principal == k.Principal }
		if i := slices.IndexFunc(rules, same); i >= 0 {
			k = rules[i]
			return rules, nil
		}
		n := len(rules)
		if n == maxRules {
			return nil, fmt.Errorf("%s: it has %d rules; codex-mcp rules remove removes some", s.path, maxRules)
		}
		if k.Number = 1; n > 0 {
			k.Number += rules[n-1].Number
		}
		k.At = time.Now().UTC().Round(0)
		return append(rules, k), nil
	})
	return k, err
}

// Remove removes the rule with a number.
func (s *Store) Remove(number int) error {
	return s.change(func(rules []Kept) ([]Kept, error) {
		i := slices.IndexFunc(rules, func(k Kept) bool { return k.Number == number })
		if i < 0 {
			return nil, fmt.Errorf("there is no rule %d", number)
		}
		return slices.Delete(rules, i, i+1), nil
	})
}

// change changes the file while no other process does.
func (s *Store) change(edit func([]Kept) ([]Kept, error)) error {
	dir := filepath.Dir(s.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := s.isOurs(); err != nil { // else a command may hold the lock
		return err
	}
	return claim.Alone(filepath.Join(dir, "rules.lock"), func() error {
		rules, err := s.List()
		if err == nil {
			rules, err = edit(rules)
		}
		if err != nil {
			return err
		}
		data, err := json.Marshal(content{version, rules}, jsontext.Multiline(true))
		if err != nil {
			return err
		}
		data = append(data, '\n')
		if err := safefile.MirrorOf(s.options.Mirror).Put(s.path, data); err != nil {
			return err
		}
		return safefile.Write(s.path, data, 0o600)
	})
}
