package run_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/internal/run"
	"github.com/codexmcp/codexmcp/internal/testenv"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
	"github.com/google/go-cmp/cmp/cmpopts"
)

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
		if got := run.MatchName([]string{tt.pattern}, tt.name); got != tt.want {
			t.Errorf("%q, %q: %t", tt.pattern, tt.name, got)
		}
	}
}
