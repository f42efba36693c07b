package native

import (
	"github.com/codexmcp/codexmcp/codexserver/internal/command"
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
)

// environ is what commands see of the engine's environment: not the keys of any provider
// or MCP server, whatever their names.
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
