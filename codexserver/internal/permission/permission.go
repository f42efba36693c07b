package permission

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/internal/paths"
	"github.com/codexmcp/codexmcp/internal/safefile"
)

// Access is what commands may do with a path and what is below it.
type Access string

// What commands may do. Write includes reading.
const (
	Deny  Access = "deny"
	Read  Access = "read"
	Write Access = "write"
)

// The paths that stand for others, with "/" and a path below them in a [Rule].
const (
	Root       = ":root"            // all files
	Minimal    = ":minimal"         // the folders of the system that programs need
	Workspace  = ":workspace_roots" // each folder that the conversation works in
	TmpDir     = ":tmpdir"          // $TMPDIR
	SlashTmp   = ":slash_tmp"       // /tmp
	oldProject = ":project_roots"   // an older name of Workspace
)

// Rule is an entry of a profile.
type Rule struct {
	// Key is the key of the configuration, for errors.
	Key string
	// Path is absolute, or begins with one of the names for other paths.
	Path   string
	Access Access
}

// Profile is what a configuration allows. The zero value restricts nothing: the sandbox mode alone decides.
type Profile struct {
	// Name is that of the profile, or of the key that denies.
	Name string
	// Rules are in any order.
	Rules []Rule
	// Whole is true if the rules say all about files. Else they only take from what a sandbox mode gives.
	Whole bool
	// Depth is how many folders below its own a glob looks into; 0 is no limit.
	Depth int
	// Workspaces are folders beside the working folder that Workspace stands for.
	Workspaces []string
	// Domains say for patterns of host names whether commands may reach them. Nil leaves the network to NetworkAccess.
	Domains map[string]bool
}

// All reports whether the rules say all about files, so that a sandbox mode adds nothing.
func (p *Profile) All() bool { return p != nil && p.Whole }

// Places are what the rules of a profile are about in one conversation.
type Places struct {
	// Cwd is the absolute working folder.
	Cwd string
	// TmpDir is $TMPDIR of commands, "" if they have none.
	TmpDir string
	// Main is the folder of the main working tree that Cwd stands for if it is in another one, else "". What is denied in the
	// one is denied in the other.
	Main string
}

// minimal are the folders of Minimal, where they exist.
var minimal = []string{"/bin", "/etc", "/lib", "/lib64", "/nix/store", "/run/current-system/sw", "/sbin", "/usr"}

// Set is a profile with absolute paths, for one conversation. A nil Set restricts nothing.
type Set struct {
	Name string
	// Entries are the rules about paths, free of symbolic links, sorted by path. No two have the same path.
	Entries []Entry
	globs   []glob
	whole   bool
	depth   int
}

// Entry is what may be done with a path and what is below it.
type Entry struct {
	Path   string
	Access Access
	// Named is the path as the profile names it, which may lead to Path by links.
	Named string
	Key   string
}

// Resolve returns the profile for a conversation, nil if it restricts nothing.
func (p *Profile) Resolve(at Places) *Set {
	if p == nil || len(p.Rules) == 0 && !p.Whole {
		return nil
	}
	s := &Set{Name: p.Name, whole: p.Whole, depth: p.Depth}
	for _, rule := range p.Rules {
		name, below, _ := strings.Cut(rule.Path, "/")
		roots, special := p.places(name, at)
		if special && rule.Access == Deny && at.Main != "" && (name == Workspace || name == oldProject) {
			roots = append(roots, at.Main)
		}
		if !special {
			roots, below = []string{rule.Path}, ""
		}
		for _, root := range roots {
			path := filepath.Join(root, filepath.FromSlash(below))
			if isGlob(path) && rule.Access == Deny {
				s.globs = append(s.globs, newGlob(path, rule.Key))
				continue
			}
			s.add(Entry{Path: paths.Real(path), Named: path, Access: rule.Access, Key: rule.Key})
		}
	}
	if p.Whole {
		s.keepNames()
	}
	slices.SortFunc(s.Entries, func(a, b Entry) int { return strings.Compare(a.Path, b.Path) })
	return s
}

// kept are names that stay read-only in each writable folder, unless the profile says something else of them.
var kept = []string{".git", ".agents", ".aws", ".codex"}

func (s *Set) keepNames() {
	named := slices.Clone(s.Entries)
	for _, e := range named {
		inWritable := func(other Entry) bool { return other.Access == Write && filepath.Dir(e.Path) == other.Path }
		if e.Access != Write || slices.ContainsFunc(named, inWritable) { // which has the names already
			continue
		}
		for _, name := range kept {
			path := filepath.Join(e.Path, name)
			says := func(other Entry) bool { return other.Path == path || other.Named == path }
			if !slices.ContainsFunc(named, says) {
				s.add(Entry{Path: path, Named: path, Access: Read, Key: e.Key})
			}
		}
	}
}

// places returns the folders that a name stands for, and whether it is such a name.
func (p *Profile) places(name string, at Places) (folders []string, special bool) {
	switch name {
	case Root:
		return []string{string(filepath.Separator)}, true
	case Minimal:
		return minimal, true
	case Workspace, oldProject:
		for _, folder := range append([]string{at.Cwd}, p.Workspaces...) {
			if filepath.IsAbs(folder) {
				folders = append(folders, filepath.Clean(folder))
			}
		}
		return folders, true
	case TmpDir:
		if filepath.IsAbs(at.TmpDir) {
			folders = []string{filepath.Clean(at.TmpDir)}
		}
		return folders, true
	case SlashTmp:
		return []string{"/tmp"}, true
	}
	return nil, false
}

// add adds an entry. Of two for the same path Deny wins over Write, and Write over Read, as in Codex.
func (s *Set) add(e Entry) {
	i := slices.IndexFunc(s.Entries, func(other Entry) bool { return other.Path == e.Path })
	switch {
	case i < 0:
		s.Entries = append(s.Entries, e)
	case e.Access == Deny || e.Access == Write && s.Entries[i].Access == Read:
		s.Entries[i] = e
	}
}

// Whole reports whether the rules say all about files.
func (s *Set) Whole() bool { return s != nil && s.whole }

// Of returns what may be done with an absolute path that is free of symbolic links. Of a profile that is not whole it
// returns Write for what no rule is about, because the sandbox mode decides.
func (s *Set) Of(path string) Access {
	if s == nil {
		return Write
	}
	for _, g := range s.globs {
		if g.covers(path) {
			return Deny
		}
	}
	return s.above(path)
}

// above returns what the entries say about a path. As in Codex, below a denied folder only what is writable is open again.
func (s *Set) above(path string) Access {
	access := Write
	if s.whole {
		access = Deny
	}
	for _, e := range s.Entries { // the longest of them that are about the path is the last
		if paths.Below(path, e.Path) && (e.Access != Read || access != Deny || s.onlyRootDenies(e.Path)) {
			access = e.Access
		}
	}
	return access
}

// onlyRootDenies reports whether no folder of a path but the root is denied.
func (s *Set) onlyRootDenies(path string) bool {
	return !slices.ContainsFunc(s.Entries, func(e Entry) bool {
		return e.Access == Deny && filepath.Dir(e.Path) != e.Path && e.Path != path && paths.Below(path, e.Path)
	})
}

// Outside returns what the entries say about the folder of an entry.
func (s *Set) Outside(e Entry) Access {
	if up := filepath.Dir(e.Path); up != e.Path {
		return s.above(up)
	}
	return Deny
}

// Closed reports whether what no rule names cannot be read.
func (s *Set) Closed() bool {
	return s != nil && s.whole && s.above(string(filepath.Separator)) == Deny
}

// NeedsMounts reports whether something is denied in what can be read, or read-only in what is writable.
func (s *Set) NeedsMounts() bool {
	return s != nil && (len(s.globs) > 0 || slices.ContainsFunc(s.Entries, func(e Entry) bool {
		outside := s.Outside(e)
		return e.Access == Deny && outside != Deny || e.Access == Read && outside == Write
	}))
}

// Plain reports whether a folder may be read as a whole and written nowhere, so that the profile has nothing to say below it.
func (s *Set) Plain(folder string) bool {
	if s == nil {
		return true
	}
	meets := func(g glob) bool { return paths.Below(g.root, folder) || paths.Below(folder, g.root) }
	below := func(e Entry) bool { return e.Path != folder && paths.Below(e.Path, folder) }
	return s.Of(folder) != Deny && !slices.ContainsFunc(s.globs, meets) && !slices.ContainsFunc(s.Entries, below)
}

// Denied returns what is left of a profile for a command that may leave the sandbox: what it denies by name. It is nil if
// that is nothing.
func (s *Set) Denied() *Set {
	if s == nil {
		return nil
	}
	left := &Set{Name: s.Name, globs: s.globs, depth: s.depth}
	for _, e := range s.Entries {
		if e.Access == Deny && filepath.Dir(e.Path) != e.Path {
			left.Entries = append(left.Entries, e)
		}
	}
	if len(left.Entries)+len(left.globs) == 0 {
		return nil
	}
	return left
}

// DeniedError reports a path that a profile denies.
type DeniedError struct{ Path, Profile string }

func (e *DeniedError) Error() string {
	return fmt.Sprintf("%s: denied by %s", e.Path, e.Profile)
}

// Is reports that the error is one of permissions, as [os.ErrPermission] is.
func (e *DeniedError) Is(target error) bool { return target == os.ErrPermission }

// Check returns a [*DeniedError] if an absolute path that is free of symbolic links may not be read.
func (s *Set) Check(path string) error {
	if s.Of(path) == Deny {
		return &DeniedError{Path: path, Profile: s.Name}
	}
	return nil
}

// CheckFile is [Set.Check] for an open file, by whatever path it was opened.
func (s *Set) CheckFile(f *safefile.File) error {
	if s == nil {
		return nil
	}
	return s.Check(f.Name())
}

// Shown returns the denied paths and globs for a person or a model, sorted.
func (s *Set) Shown() (denied []string) {
	if s == nil {
		return nil
	}
	for _, e := range s.Entries {
		if e.Access == Deny {
			denied = append(denied, e.Named)
		}
	}
	for _, g := range s.globs {
		denied = append(denied, g.text)
	}
	slices.Sort(denied)
	return slices.Compact(denied)
}

// Words say what may be read and written. Written is "" if the sandbox mode says it.
func (s *Set) Words() (read, written string) {
	var reads, writes []string
	for _, e := range s.Entries {
		if e.Access == Read && s.Closed() {
			reads = append(reads, e.Named)
		} else if e.Access == Write {
			writes = append(writes, e.Named)
		}
	}
	read = "all files"
	if s.Closed() {
		read = "what is in " + strings.Join(append(reads, writes...), ", ") + ", and nothing else"
	}
	if denied := s.Shown(); len(denied) > 0 {
		read += "; not " + strings.Join(denied, ", ")
	}
	if !s.whole {
		return read, ""
	}
	if len(writes) == 0 {
		return read, "nothing"
	}
	var still []string
	for _, e := range s.Entries {
		if e.Access == Read && s.Outside(e) == Write {
			still = append(still, e.Named)
		}
	}
	return read, "what is in " + strings.Join(writes, ", ") + "; not " + strings.Join(still, ", ")
}

// Reaches reports whether the profile has rules for host names.
func (p *Profile) Reaches() bool { return p != nil && p.Domains != nil }

// Hosts says which hosts commands reach. Network is true for all of them.
func (p *Profile) Hosts(network bool) string {
	var allowed []string
	for pattern, allow := range p.Domains {
		if allow {
			allowed = append(allowed, pattern)
		}
	}
	slices.Sort(allowed)
	switch {
	case network:
		return "every host"
	case len(allowed) > 0:
		return strings.Join(allowed, ", ") + " by HTTPS, and no other host"
	}
	return "no network"
}

// Domain returns whether the profile lets commands reach a host name, and whether it says so. Of the patterns that match,
// one that denies counts. What none matches is denied, unless there are no rules.
func (p *Profile) Domain(host string) (allowed, known bool) {
	if !p.Reaches() {
		return false, false
	}
	for pattern, allow := range p.Domains {
		if !matchesHost(pattern, host) {
			continue
		}
		if !allow {
			return false, true
		}
		allowed = true
	}
	return allowed, true
}

// matchesHost compares as Codex does: *.HOST is each name below a host, **.HOST the host, too, and * every name.
func matchesHost(pattern, host string) bool {
	pattern, host = strings.ToLower(pattern), strings.ToLower(strings.TrimSuffix(host, "."))
	if below, is := strings.CutPrefix(pattern, "**."); is {
		return host == below || strings.HasSuffix(host, "."+below)
	}
	if below, is := strings.CutPrefix(pattern, "*."); is {
		return strings.HasSuffix(host, "."+below) && host != "."+below
	}
	return pattern == "*" || pattern == host
}
