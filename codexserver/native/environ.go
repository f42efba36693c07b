package native

import (
	"github.com/codexmcp/codexmcp/codexserver/internal/command"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
)

// environ is what commands may know of the engine's environment.
func environ(p config.ShellEnvironment, all []string) []string {
	return command.EnvPolicy{
		Inherit:               command.Inherit(p.Inherit),
		IgnoreDefaultExcludes: p.IgnoreDefaultExcludes,
		Exclude:               p.Exclude,
		Set:                   p.Set,
		IncludeOnly:           p.IncludeOnly,
	}.Environ(all)
}
