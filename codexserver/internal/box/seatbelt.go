package box

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/codexmcp/codexmcp/codexserver/internal/permission"
	"github.com/codexmcp/codexmcp/internal/paths"
)

// seatbelt is what sandbox-exec must enforce. It judges by real paths, so a link made later leads out of the roots.
type seatbelt struct {
	roots   []string // free of symbolic links
	protect []string
	network bool
	set     *permission.Set // of a profile, or nil
}

const seatbeltBase = `(version 1)
(deny default)
(allow process-fork)
(allow process-exec)
(allow process-info* (target same-sandbox))
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow sysctl-write (sysctl-name "kern.grade_cputype"))
(allow iokit-open (iokit-registry-entry-class "RootDomainUserClient"))
(allow ipc-posix-sem)
(allow ipc-posix-shm-read* (ipc-posix-name-prefix "apple.cfprefs."))
(allow user-preference-read)
(allow system-socket (socket-domain AF_UNIX))
(allow mach-lookup
  (global-name "com.apple.cfprefsd.daemon")
  (global-name "com.apple.cfprefsd.agent")
  (local-name "com.apple.cfprefsd.agent")
  (global-name "com.apple.bsd.dirhelper")
  (global-name "com.apple.system.logger")
  (global-name "com.apple.system.opendirectoryd.libinfo")
  (global-name "com.apple.system.opendirectoryd.membership"))
(allow file-map-executable)
(allow file-read*)
(deny file-read-data (regex #"^/dev/(bpf|disk|pty|rdisk|tty)"))
(allow file-write-data
  (literal "/dev/null")
  (literal "/dev/zero")
  (literal "/dev/random")
  (literal "/dev/urandom"))
(allow file-read-data file-write-data file-ioctl (literal "/dev/dtracehelper"))
(allow pseudo-tty)
(allow file-read* file-write* file-ioctl (literal "/dev/ptmx"))
(allow file-read* file-write* (require-all (regex #"^/dev/ttys[0-9]+") (extension "com.apple.sandbox.pty")))
`

const seatbeltNetwork = `(allow network*)
(allow system-socket)
(allow mach-lookup
  (global-name "com.apple.SystemConfiguration.DNSConfiguration")
  (global-name "com.apple.SystemConfiguration.configd")
  (global-name "com.apple.trustd")
  (global-name "com.apple.trustd.agent"))
`

// arguments returns those of sandbox-exec, up to the command. Paths are parameters, so no name changes the profile.
func (s seatbelt) arguments() []string {
	var profile strings.Builder
	profile.WriteString(seatbeltBase)
	if s.network {
		profile.WriteString(seatbeltNetwork)
	}
	var definitions []string
	rule := func(format, kind string, i int, path string) {
		name := fmt.Sprintf("%s_%d", kind, i)
		definitions = append(definitions, "-D", name+"="+path)
		fmt.Fprintf(&profile, format, name)
	}
	for i, root := range s.roots {
		rule("(allow file-write* (subpath (param %q)))\n", "ROOT", i, root)
	}
	// The last rule that matches counts.
	protected, way := s.protected()
	for i, path := range protected {
		rule("(deny file-write* (subpath (param %q)))\n", "PROTECTED", i, path)
	}
	for i, path := range way {
		rule("(deny file-write-unlink (literal (param %q)))\n", "WAY", i, path)
	}
	s.permissions(&profile, rule)
	profile.WriteString("(deny file-write-setugid)\n")
	return append(append([]string{"-p", profile.String()}, definitions...), "--")
}

// permissions adds what a profile of permissions says, outer paths first, and its patterns behind all. What is denied keeps its
// place, with the folders above it.
func (s seatbelt) permissions(profile *strings.Builder, rule func(format, kind string, i int, path string)) {
	if s.set == nil {
		return
	}
	for i, e := range s.set.Entries {
		outside := s.set.Outside(e)
		switch {
		case e.Access == permission.Deny:
			rule("(deny file-read* file-write* (subpath (param %q)))\n", "DENIED", i, e.Path)
		case e.Access == permission.Read && outside == permission.Write:
			rule("(deny file-write* (subpath (param %q)))\n", "KEPT", i, e.Path)
		case e.Access == permission.Write && outside == permission.Deny:
			rule("(allow file-read* file-write* (subpath (param %q)))\n", "OPEN", i, e.Path)
		case e.Access == permission.Write && outside == permission.Read:
			rule("(allow file-write* (subpath (param %q)))\n", "WRITTEN", i, e.Path)
		}
		if e.Access != permission.Write {
			for up, k := filepath.Dir(e.Path), 0; s.holds(up); up, k = filepath.Dir(up), k+1 {
				rule("(deny file-write-unlink (literal (param %q)))\n", fmt.Sprintf("ABOVE_%d", i), k, up)
			}
		}
	}
	for _, pattern := range s.set.Patterns() {
		fmt.Fprintf(profile, "(deny file-read* file-write* (regex #\"%s\"))\n", pattern)
	}
}

// protected returns the paths that stay read-only, with their targets, and the folders above that must keep their names.
func (s seatbelt) protected() (kept, way []string) {
	for _, path := range s.protect {
		kept = append(kept, filepath.Clean(path))
		if real, err := filepath.EvalSymlinks(path); err == nil {
			kept = append(kept, real)
		}
	}
	slices.Sort(kept)
	kept = slices.Compact(kept)
	for _, path := range kept {
		for dir := filepath.Dir(path); s.holds(dir); dir = filepath.Dir(dir) {
			way = append(way, dir)
		}
	}
	slices.Sort(way)
	return kept, slices.Compact(way)
}

// holds reports whether a folder lies in a root, and is not that root itself.
func (s seatbelt) holds(dir string) bool {
	return slices.ContainsFunc(s.roots, func(root string) bool { return dir != root && paths.Below(dir, root) })
}
