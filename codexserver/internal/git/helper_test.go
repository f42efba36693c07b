package git_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/box"
	"github.com/codexmcp/codexmcp/internal/memdir"
	"github.com/google/go-cmp/cmp"
)

// setting is a line of a configuration.
type setting struct{ key, value string }

// configure adds lines to a configuration, as git config would, which is a process for each.
func configure(t testing.TB, file string, settings ...setting) {
	t.Helper()
	var text strings.Builder
	for _, s := range settings {
		at, end := strings.Index(s.key, "."), strings.LastIndex(s.key, ".")
		section := s.key[:at]
		if at < end {
			section += fmt.Sprintf(" %q", s.key[at+1:end])
		}
		value := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s.value)
		if strings.ContainsAny(value, ";#") {
			value = `"` + value + `"`
		}
		fmt.Fprintf(&text, "[%s]\n\t%s = %s\n", section, s.key[end+1:], value)
	}
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	if err == nil {
		_, err = f.WriteString(text.String())
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
}

// all returns settings of one value.
func all(value string, keys ...string) []setting {
	settings := make([]setting, len(keys))
	for i, key := range keys {
		settings[i] = setting{key, value}
	}
	return settings
}

func TestMain(m *testing.M) {
	box.Main() // this may be a launcher
	if err := isolate(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(memdir.Run(m))
}

// isolate makes git read only the repository's configuration, for all tests. A process that git would
// start after each commit and push, to look whether there is something to clean up, is not started.
func isolate() error {
	const home = "/nonexistent"
	env := map[string]string{
		"HOME": home, "XDG_CONFIG_HOME": filepath.Join(home, ".config"), "GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CONFIG_NOSYSTEM": "1",
		"GIT_AUTHOR_NAME": "somebody", "GIT_AUTHOR_EMAIL": "somebody@example.com",
		"GIT_COMMITTER_NAME": "somebody", "GIT_COMMITTER_EMAIL": "somebody@example.com",
		"GIT_CONFIG_COUNT": "2",
	}
	for i, key := range []string{"maintenance.auto", "receive.autogc"} {
		env[fmt.Sprint("GIT_CONFIG_KEY_", i)], env[fmt.Sprint("GIT_CONFIG_VALUE_", i)] = key, "false"
	}
	var err error
	for name, value := range env {
		err = errors.Join(err, os.Setenv(name, value))
	}
	return err
}

// hashIn returns the hash of a new commit, as git commit prints it.
func hashIn(out string) string {
	return regexp.MustCompile("[0-9a-f]{40,64}").FindString(out)
}

func same(t testing.TB, what string, want, got map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got)\n%s", what, diff)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
