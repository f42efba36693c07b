package workers

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/metrics"
	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// reloadPool returns a pool whose workers of ann and bob run, without processes, and the folder in which
// users have their folders. The folder carl is there, and nobody's.
func reloadPool(t *testing.T) (p *Pool, top string) {
	t.Helper()
	top = t.TempDir()
	for _, dir := range []string{"server", "ann", "bob", "carl", "way"} {
		must.OK(t, os.Mkdir(filepath.Join(top, dir), 0o700))
	}
	program := filepath.Join(top, "program")
	must.OK(t, os.WriteFile(program, nil, 0o700))
	must.OK(t, os.Symlink(top+"/server", top+"/way/link"))
	p = newPool(Options{
		Home: filepath.Join(top, "server"), Program: program, Hidden: []string{top + "/way/link/key"}, Metrics: metrics.New(), Logger: slog.New(slog.DiscardHandler),
		HTTP: settings.HTTP{Principals: map[string]settings.Principal{"ann": {Folders: []string{top + "/ann"}}, "bob": {Folders: []string{top + "/bob"}}}},
	})
	p.start = func(_ context.Context, name string) (*process, error) {
		paths, err := resolvePaths(p.o.Home, p.o.Program, p.o.Hidden, p.http.Load().Principals)
		if err != nil {
			return nil, err
		}
		f := newFakeWorker(p)
		f.began = begun{settings: p.settingsOf(name, p.http.Load(), paths), hidden: paths.enclosure(name).Hidden}
		return f.process, nil
	}
	for _, name := range []string{"ann", "bob"} {
		must.Get(p.acquire(t.Context(), name, false))(t)
		p.release(name, false)
	}
	t.Cleanup(func() { must.Check(t, p.Close()) })
	return p, top
}

// TestReload checks whose worker must end when the users are replaced.
func TestReload(t *testing.T) {
	type all = map[string]settings.Principal
	in := func(folder string) settings.Principal { return settings.Principal{Folders: []string{folder}} }
	for name, tt := range map[string]struct {
		set all // folders and homes below top; without a folder the user goes
		end []string
		err string // if it is refused
	}{
		"nothing":                   {nil, nil, ""},
		"tokens, scopes and limits": {all{"ann": {Folders: []string{"/ann"}, Tokens: []string{"x"}, Scopes: []string{"codex:read"}, Limits: settings.PrincipalLimits{Turns: 3, Tasks: 4}}}, nil, ""},
		"a user goes":               {all{"bob": {}}, []string{"bob"}, ""},
		"a user comes":              {all{"carl": in("/carl")}, []string{"ann", "bob"}, ""},
		"one who shares":            {all{"carl": in("/bob")}, nil, ""},
		"another folder":            {all{"bob": in("/carl")}, []string{"ann", "bob"}, ""},
		"a folder is not there":     {all{"carl": in("/none")}, nil, "http.principals.carl.folders"},
		"the way to a hidden file":  {all{"carl": {Folders: []string{"/carl"}, Home: "/way"}}, nil, "http.principals.carl: its commands can write on the way to "},
		"a folder of another":       {all{"carl": in("")}, nil, "http.principals."},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // a worker takes a second to end
				p, top := reloadPool(t)
				all := maps.Clone(p.http.Load().Principals)
				for name, user := range tt.set {
					if user.Folders == nil {
						delete(all, name)
						continue
					}
					user.Folders = []string{top + user.Folders[0]}
					if user.Home != "" {
						user.Home = top + user.Home
					}
					all[name] = user
				}
				apply, err := p.Reload(all)
				if tt.err != "" {
					if err == nil || !strings.Contains(err.Error(), tt.err) {
						t.Errorf("%v, want %s", err, tt.err)
					}
					return
				}
				must.OK(t, err)
				must.Equal(t, "who ends", tt.end, apply())
				for _, name := range []string{"bob", "carl"} {
					_, known := all[name]
					if _, err := p.acquire(t.Context(), name, false); (err == nil) != known {
						t.Errorf("%s: %v", name, err)
					} else if known {
						p.release(name, false)
					}
				}
			})
		})
	}
}

// TestAllows checks which hidden paths a worker may go on with: those that are new must lie in what it does not see.
func TestAllows(t *testing.T) {
	for _, tt := range []struct {
		before, now string
		want        bool
	}{
		{"/bob", "", true},
		{"/bob", "/bob", true},
		{"/bob", "/bob/below", true},
		{"/bob/below", "/bob", false}, // it sees what is beside
		{"/bob", "/bob2", false},
		{"/bob", "/bob /carl", false},
		{"/bob /carl", "/carl/a /bob", true},
		{"", "/bob", false},
	} {
		worker := begun{hidden: strings.Fields(tt.before)}
		if got := worker.allows(worker.settings, strings.Fields(tt.now)); got != tt.want {
			t.Errorf("without %q, and now without %q: %t", tt.before, tt.now, got)
		}
	}
}
