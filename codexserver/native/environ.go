package native

import (
	"github.com/codexmcp/codexmcp/codexserver/internal/command"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
)

// environ returns the part of the engine's environment that commands see. It leaves out
// the variables with keys of any provider or MCP server.
func environ(cfg *config.Config, all []string) []string {
	p := cfg.ShellEnvironment
	return command.EnvPolicy{
		Inherit:               command.Inherit(p.Inherit),
		IgnoreDefaultExcludes: p.IgnoreDefaultExcludes,
		Exclude:               p.Exclude,
		Set:                   p.Set,
		IncludeOnly:           p.IncludeOnly,
		Withhold:              cfg.KeyVariables(),
	}.Environ(all)
}
