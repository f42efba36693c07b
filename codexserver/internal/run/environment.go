package run

import (
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
)

// Inherit is how much of the server's environment a command inherits.
type Inherit string

// The values of shell_environment_policy.inherit. Any other inherits everything.
const (
	InheritCore Inherit = "core" // the home, the user, the shell, PATH and temporary folders
	InheritNone Inherit = "none" // nothing
)

// EnvPolicy is the configuration's shell_environment_policy. The zero value passes all variables of the server to
// a command but those whose names look like secrets. Names are compared without regard to case. Patterns may
// have *, ? and [class], which match any character.
type EnvPolicy struct {
	// Inherit is what the other fields start from.
	Inherit Inherit `json:"inherit" words:",all,core,none"`
	// IgnoreDefaultExcludes keeps names that contain KEY, SECRET or TOKEN.
	IgnoreDefaultExcludes bool `json:"ignore_default_excludes"`
	// Exclude are patterns of names to leave out.
	Exclude []string `json:"exclude"`
	// Set are variables to add or replace.
	Set map[string]string `json:"set"`
	// IncludeOnly are patterns of the names to keep, applied last. An empty list keeps all.
	IncludeOnly []string `json:"include_only"`
	// UseProfile is for the engine: it runs commands in the user's shell, with the user's profile.
	UseProfile bool `json:"experimental_use_profile"`
	// Withhold are names that are never inherited, like [Secrets]. Set can still add them. It is no key.
	Withhold []string `json:"-"`
	// Named are names of variables that are inherited whatever the fields above say, also secrets. It is no key.
	Named []string `json:"-"`
}

// Secrets returns patterns of the keys and tokens that commands never inherit: of model providers, and [ClientSecrets].
func Secrets() []string {
	return append(ClientSecrets(), "AZURE_OPENAI_API_KEY", "CODEX_API_KEY", "CODEX_*TOKEN", "OPENAI_API_KEY")
}

// ClientSecrets returns those for the programs that start MCP servers.
func ClientSecrets() []string {
	return []string{
		"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_*TOKEN",
		"COPILOT_GITHUB_TOKEN", "CURSOR_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY",
	}
}

// Environ applies the policy to environ, and returns the command's environment, sorted.
func (p EnvPolicy) Environ(environ []string) []string { return p.environ(runtime.GOOS, environ) }

func (p EnvPolicy) environ(system string, environ []string) []string {
	secret := func(name string) bool {
		name = strings.ToUpper(name)
		return strings.Contains(name, "KEY") || strings.Contains(name, "SECRET") || strings.Contains(name, "TOKEN")
	}
	never := matcher(slices.Concat(Secrets(), p.Exclude)) // of what is inherited
	vars, named := map[string]string{}, map[string]bool{} // by known name
	for _, name := range p.Named {
		named[known(system, name)] = true
	}
	for _, entry := range environ {
		name, _, ok := strings.Cut(entry, "=")
		inherited := p.inherits(name) && (p.IgnoreDefaultExcludes || !secret(name)) && !never(name)
		if ok && name != "" && (inherited || named[known(system, name)]) {
			vars[known(system, name)] = entry
		}
	}
	for name, value := range p.Set {
		vars[known(system, name)] = name + "=" + value
	}
	maps.DeleteFunc(vars, func(_, entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return len(p.IncludeOnly) > 0 && !MatchName(p.IncludeOnly, name)
	})
	env := slices.AppendSeq(make([]string, 0, len(vars)), maps.Values(vars)) // not nil, which would inherit everything
	slices.Sort(env)
	return env
}

// inherits reports whether the server's variable with a name may be inherited, but for the patterns.
func (p EnvPolicy) inherits(name string) bool {
	same := func(other string) bool { return strings.EqualFold(other, name) }
	return !slices.ContainsFunc(p.Withhold, same) && p.Inherit != InheritNone &&
		(p.Inherit != InheritCore || slices.ContainsFunc(Core(), same))
}

// Core returns the names of the variables of [InheritCore].
func Core() []string {
	if runtime.GOOS == "windows" {
		return []string{"PATH", "PATHEXT", "USERNAME", "USERPROFILE", "SYSTEMROOT", "COMSPEC", "TEMP", "TMP"}
	}
	return []string{"HOME", "LOGNAME", "PATH", "SHELL", "USER", "USERNAME", "TMPDIR", "TEMP", "TMP"}
}

// MatchName reports whether a name matches one of the patterns, without regard to case.
func MatchName(patterns []string, name string) bool { return matcher(patterns)(name) }

// matcher returns [MatchName] of the patterns. Most are names.
func matcher(patterns []string) func(name string) bool {
	names, others := map[string]bool{}, []string(nil)
	for _, pattern := range patterns {
		if pattern = folded(pattern); strings.ContainsAny(pattern, `*?[\`) {
			others = append(others, pattern)
		} else {
			names[pattern] = true
		}
	}
	return func(name string) bool {
		name = folded(name)
		return names[name] || slices.ContainsFunc(others, func(pattern string) bool {
			ok, err := path.Match(pattern, name)
			return err == nil && ok
		})
	}
}

// folded returns a name or pattern in upper case and without slashes, which no * or ? of [path.Match] matches.
func folded(text string) string { return strings.ReplaceAll(strings.ToUpper(text), "/", "\x00") }
