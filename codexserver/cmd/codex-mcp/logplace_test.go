package main

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestLogPlaces refuses a log where commands can write by what is known at the start, and where they can
// replace a link on the way to it. Nothing is made there.
func TestLogPlaces(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("windows has other folders for temporary files")
	}
	top := must.Get(filepath.EvalSymlinks(t.TempDir()))(t)
	in := func(path string) string { return filepath.Join(top, path) }
	for _, dir := range []string{"home/codex", "work/logs", "root/logs", "temp/logs", "own/logs"} {
		must.OK(t, os.MkdirAll(in(dir), 0o755))
	}
	must.OK(t, errors.Join(os.Symlink(in("own/logs"), in("work/link")), os.Symlink(in("work/logs"), in("own/link"))))
	t.Setenv("HOME", in("home"))
	t.Setenv("TMPDIR", in("temp"))
	t.Chdir(in("work"))
	const words = "commands can write in "
	for name, tt := range map[string]struct {
		engine, folder, path, config string
		want                         string // the writable folder; "" if the log is opened
	}{
		"elsewhere":                                {"native", "", "own/logs/log", "", ""},
		"elsewhere, of the bridge":                 {"codex", "", "own/logs/log", excludeTmp, ""},
		"in the home":                              {"native", "", "home/log", "", ""},
		"the working folder":                       {"native", "", "work/log", "", "work"},
		"below the working folder":                 {"native", "", "work/logs/log", "", "work"},
		"relative":                                 {"native", "", "", "", "work"},
		"below the folder of the command line":     {"native", "own", "own/logs/log", "", "own"},
		"not below the folder of the command line": {"native", "own", "work/logs/log", "", ""},
		"the home as the working folder":           {"native", "home", "home/log", "", ""},
		"below a writable root":                    {"native", "", "root/logs/log", "[sandbox_workspace_write]\nwritable_roots = [\"TOP/root\"]\n", "root"},
		"below $TMPDIR":                            {"native", "", "temp/logs/log", "", "temp"},
		"below $TMPDIR, which is excluded":         {"native", "", "temp/logs/log", excludeTmp, ""},
		"through a link in the working folder":     {"native", "", "work/link/log", "", "work"},
		"through a link to the working folder":     {"native", "", "own/link/log", "", "work"},
		"a configuration that cannot be read":      {"native", "", "work/log", "[[[", "work"},
		"below $TMPDIR, of the bridge":             {"codex", "", "temp/logs/log", "", "temp"},
		"below the working folder, of the bridge":  {"codex", "", "work/logs/log", excludeTmp, "work"},
	} {
		t.Run(name, func(t *testing.T) {
			writeConfig(t, in("home/codex"), strings.ReplaceAll(tt.config, "TOP", top))
			o := &options{trace: "log"}
			if tt.folder != "" {
				o.folder = in(tt.folder)
			}
			if tt.path != "" {
				o.trace = in(tt.path)
			}
			c := &configuration{home: in("home/codex"), settings: &config.Settings{}}
			end, err := c.openLogs(o, tt.engine)
			if tt.want == "" {
				must.OK(t, err)
				must.Get(c.trace.Write([]byte("line\n")))(t)
				end()
				must.Check(t, os.Remove(o.trace))
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), "--trace: "+words+in(tt.want)+",") {
				t.Errorf("%v", err)
			}
			if _, err := os.Lstat(o.trace); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("it was made: %v", err)
			}
		})
	}
}

const excludeTmp = "[sandbox_workspace_write]\nexclude_slash_tmp = true\nexclude_tmpdir_env_var = true\n"
