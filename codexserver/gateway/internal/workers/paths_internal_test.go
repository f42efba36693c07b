package workers

import (
	"testing"

	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestPathsRefused checks the paths of the server, and that the error names who has the path.
func TestPathsRefused(t *testing.T) {
	for _, tt := range []struct{ name, home, folder, want string }{
		{"the server's home in a home", "/srv", "/work/ann", "http.principals.ann.home: /srv contains the server's home"},
		{"the program in a home", "/opt", "/work/ann", "http.principals.ann.home: /opt contains /opt/codex-mcp, the program of the workers"},
		{"the server's home in a folder", "/home/ann", "/srv", "http.principals.ann.folders: /srv contains /srv/server, which belongs to the server"},
		{"a hidden file in a folder", "/home/ann", "/etc", "http.principals.ann.folders: /etc contains /etc/nats/key, which belongs to the server"},
		{"a home in another's folder", "/work/bob/home", "/work/ann", "http.principals.ann.home: /work/bob/home lies in /work/bob, where bob can write"},
		{"a home in the own folder", "/work/ann/home", "/work/ann", "http.principals.ann.home: /work/ann/home lies in /work/ann, where ann can write"},
		{"a home in another's", "/home/bob/ann", "/work/ann", "http.principals.ann.home: it is or lies in that of bob"},
		{"a folder in another's", "/home/ann", "/work/bob/ann", "http.principals.ann.folders: /work/bob/ann lies in /work/bob of bob"},
		{"a folder that is another's home", "/home/ann", "/home/bob", "http.principals.ann.folders: /home/bob lies in /home/bob of bob"},
		{"a folder in another's home", "/home/ann", "/home/bob/work", "http.principals.ann.folders: /home/bob/work lies in /home/bob of bob"},
		{"a folder in the own home", "/home/ann", "/home/ann/work", ""},
		{"a folder of both", "/home/ann", "/work/bob", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p := &userPaths{
				server: "/srv/server", program: "/opt/codex-mcp", hidden: []string{"/etc/nats/key"},
				homes: map[string]string{"ann": tt.home, "bob": "/home/bob"}, folders: map[string][]string{"ann": {tt.folder}, "bob": {"/work/bob"}},
			}
			got := ""
			if err := p.check(); err != nil {
				got = err.Error()
			}
			must.Equal(t, "the error", tt.want, got)
		})
	}
}

// TestPathsHidden checks that an enclosure hides everything of others, with a mount only for what
// no other one hides.
func TestPathsHidden(t *testing.T) {
	p := &userPaths{
		server: "/srv/server", program: "/opt/codex-mcp", hidden: []string{"/etc/nats/key", "/home/ann/inner/log", "/run/user", "/srv/server/log"},
		homes:   map[string]string{"ann": "/home/ann", "bob": "/srv/server/codex-mcp/principals/bob", "carl": "/srv/server/codex-mcp/principals/carl"},
		folders: map[string][]string{"ann": {"/work/ann", "/work/all"}, "bob": {"/work/bob", "/work/all"}, "carl": {"/srv/server-of-carl", "/work/all"}},
	}
	for user, want := range map[string][]string{
		"ann": {"/etc/nats/key", "/home/ann/inner/log", "/run/user", "/srv/server", "/srv/server-of-carl", "/work/bob"},
		"bob": {"/etc/nats/key", "/home/ann", "/run/user", "/srv/server", "/srv/server-of-carl", "/work/ann"},
	} {
		must.Equal(t, user, want, p.enclosure(user).Hidden)
	}
}
