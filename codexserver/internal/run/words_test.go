package run_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestBatch has words of batch files that cmd.exe would read again.
func TestBatch(t *testing.T) {
	for _, tt := range []struct {
		program, word string
		starts        bool
	}{
		{`C:\bin\npm.cmd`, "test", true}, {`C:\bin\npm.cmd`, "a b (c) 'd' ü=1,2;", true}, {`C:\bin\npm.exe`, `x"&echo &`, true},
		{`C:\bin\npm.cmd`, `x"`, false}, {`C:\bin\npm.CMD`, "a&b", false}, {`C:\bin\npm.bat`, "%PATH%", false}, {`C:\bin\npm.bat. `, "a|b", false},
		{`C:\bin\npm.cmd`, "a<b", false}, {`C:\bin\npm.cmd`, "a>b", false}, {`C:\bin\npm.cmd`, "a^b", false}, {`C:\bin\npm.cmd`, "a!b!", false},
		{`C:\bin\npm.cmd`, "a\nb", false}, {`C:\bin\npm.cmd`, "a\rb", false}, {`C:\a&b\npm.cmd`, "test", false},
	} {
		argv := []string{"npm", tt.word}
		if err := run.CheckBatch("windows", tt.program, argv); (err == nil) != tt.starts {
			t.Errorf("%s %q: %v", tt.program, tt.word, err)
		}
		if err := run.CheckBatch("linux", tt.program, argv); err != nil {
			t.Errorf("%s %q on Linux: %v", tt.program, tt.word, err)
		}
	}
}

func TestEnvPolicy(t *testing.T) {
	environ := []string{
		"PATH=/bin", "HOME=/root", "FOO=1", "A_B=2", "FOO_KEY=k", "my_token=t", "A_SECRET=s", "OPENAI_API_KEY=k", "CODEX_HOME=/c",
		"Anthropic_Api_Key=k", "CLAUDE_CODE_OAUTH_TOKEN=t", "CLAUDE_CODE_SSE_PORT=1", "WEIRD=w", "EMPTY=", "FOO=3", "=C:=x", "nonsense",
	}
	tests := []struct {
		name   string
		policy run.EnvPolicy
		want   []string
	}{
		{"zero", run.EnvPolicy{}, []string{"A_B=2", "CLAUDE_CODE_SSE_PORT=1", "CODEX_HOME=/c", "EMPTY=", "FOO=3", "HOME=/root", "PATH=/bin", "WEIRD=w"}},
		{"with secrets", run.EnvPolicy{IgnoreDefaultExcludes: true}, []string{
			"A_B=2", "A_SECRET=s", "CLAUDE_CODE_SSE_PORT=1", "CODEX_HOME=/c", "EMPTY=", "FOO=3", "FOO_KEY=k", "HOME=/root", "PATH=/bin", "WEIRD=w", "my_token=t",
		}},
		{"withheld", run.EnvPolicy{IgnoreDefaultExcludes: true, Withhold: []string{"weird", "FOO", "A[B", "my_token"}}, []string{
			"A_B=2", "A_SECRET=s", "CLAUDE_CODE_SSE_PORT=1", "CODEX_HOME=/c", "EMPTY=", "FOO_KEY=k", "HOME=/root", "PATH=/bin",
		}},
		{"no other field hands it on", run.EnvPolicy{IgnoreDefaultExcludes: true, IncludeOnly: []string{"OPENAI_API_KEY", "WEIRD"}, Withhold: []string{"WEIRD"}}, nil},
		{"named, whatever the rest says", run.EnvPolicy{
			Inherit: run.InheritNone, Named: []string{"OPENAI_API_KEY", "WEIRD", "foo", "NO_SUCH", ""}, Withhold: []string{"WEIRD"}, Exclude: []string{"*"},
		}, []string{"OPENAI_API_KEY=k", "WEIRD=w"}},
		{"but set", run.EnvPolicy{
			Inherit: run.InheritNone, Withhold: []string{"WEIRD"}, Set: map[string]string{"WEIRD": "mine", "OPENAI_API_KEY": "mine"},
		}, []string{"OPENAI_API_KEY=mine", "WEIRD=mine"}},
		{"core", run.EnvPolicy{Inherit: run.InheritCore}, []string{"HOME=/root", "PATH=/bin"}},
		{"none", run.EnvPolicy{Inherit: run.InheritNone, Set: map[string]string{"A_KEY": "1"}}, []string{"A_KEY=1"}},
		{"exclude", run.EnvPolicy{Exclude: []string{"f?o", "*_home"}}, []string{"A_B=2", "CLAUDE_CODE_SSE_PORT=1", "EMPTY=", "HOME=/root", "PATH=/bin", "WEIRD=w"}},
		{"set wins over exclude", run.EnvPolicy{Exclude: []string{"*"}, Set: map[string]string{"FOO": "new"}}, []string{"FOO=new"}},
		{"include only, last", run.EnvPolicy{Set: map[string]string{"X": "1", "A_C": "3"}, IncludeOnly: []string{"a_*", "FOO_KEY"}}, []string{"A_B=2", "A_C=3"}},
		{"a bad pattern matches nothing", run.EnvPolicy{Exclude: []string{"["}, IncludeOnly: []string{"[", "FOO"}}, []string{"FOO=3"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.policy.Inherit == run.InheritCore {
				testenv.NeedsUnix(t, "HOME is of the core of the environment")
			}
			must.Equal(t, "the environment", tt.want, tt.policy.Environ(environ), cmpopts.EquateEmpty())
		})
	}
}

func TestMatchName(t *testing.T) {
	for _, tt := range []struct {
		pattern, name string
		want          bool
	}{
		{"*KEY*", "a/key", true}, {"*key*", "KEY/a/B", true}, {"*TOKEN", "CODEX_/x/TOKEN", true}, {"A?B", "A/B", true}, {"A/*", "a/b/c", true},
		{"A/B", "AB", false}, {"*KEY", "A/KEYS", false},
	} {
		must.Equal(t, tt.pattern+", "+tt.name, tt.want, run.MatchName([]string{tt.pattern}, tt.name))
	}
}

func lines(from, to int) string {
	var b strings.Builder
	for n := from; n <= to; n++ {
		fmt.Fprintln(&b, n)
	}
	return b.String()
}

func TestFormatOutput(t *testing.T) {
	x := func(n int) string { return strings.Repeat("x", n) }
	tests := []struct{ name, in, want string }{
		{"empty", "", ""}, {"127 lines", lines(1, 127), lines(1, 127)}, {"128 lines", lines(1, 128), lines(1, 128)},
		{"256 lines", lines(1, 256), lines(1, 256)},
		{"256 lines, the last one open", lines(1, 255) + "256", lines(1, 255) + "256"},
		{"257 lines", lines(1, 257), lines(1, 128) + "[... omitted 1 of 257 lines ...]\n\n" + strings.TrimSuffix(lines(130, 257), "\n")},
		{"5000 lines", lines(1, 5000), lines(1, 128) + "[... omitted 4744 of 5000 lines ...]\n\n" + strings.TrimSuffix(lines(4873, 5000), "\n")},
		{"5120 bytes", x(5120), x(5120)}, {"10240 bytes", x(10240), x(10240)},
		{"40000 bytes in a line", "a" + x(39998) + "z", "a" + x(5119) + "\n[... omitted 29824 of 40000 bytes ...]\n\n" + x(5055) + "z"},
		{"runes that no cut may split", strings.Repeat("日", 4000), strings.Repeat("日", 1706) + "\n[... omitted 1824 of 12000 bytes ...]\n\n" + strings.Repeat("日", 1686)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			must.Equal(t, "the output", tt.want, run.FormatOutput(tt.in))
		})
	}
}

// TestLineShellOfWindows checks which shell runs lines there, and that it is not one of another system.
func TestLineShellOfWindows(t *testing.T) {
	for programs, want := range map[string][]string{
		"ps/pwsh git/bash":                    {"pwsh", "-NoProfile", "-Command"},
		"System32/bash System32/powershell":   {"powershell", "-NoProfile", "-Command"},
		"git/bash":                            {"bash", "-lc"},
		"System32/bash":                       {"cmd", "/c"},
		"WindowsApps/bash System32/sh git/sh": {"cmd", "/c"},
		"":                                    {"cmd", "/c"},
	} {
		top := t.TempDir()
		var folders []string
		for program := range strings.FieldsSeq(programs) {
			path := filepath.Join(top, program)
			if runtime.GOOS == "windows" {
				path += ".exe"
			}
			must.OK(t, os.MkdirAll(filepath.Dir(path), 0o777))
			must.OK(t, testenv.WriteProgram(path, nil))
			folders = append(folders, filepath.Dir(path))
		}
		path := "PATH=" + strings.Join(folders, string(filepath.ListSeparator))
		must.Equal(t, fmt.Sprintf("with %q", programs), want, run.LineShell("windows", []string{path}))
	}
}
