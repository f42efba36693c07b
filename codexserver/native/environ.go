package native

import (
	"maps"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/internal/run"
)

// environ returns the part of the client's environment that commands see. It leaves out
// the variables with keys of any provider or MCP server.
func environ(cfg *config.Config) []string {
	policy := cfg.ShellEnvironment
	policy.Withhold = cfg.KeyVariables
	return policy.Environ(cfg.Environ)
}

// nameable returns the part of the client's environment of which a rule may name variables: without the keys of model
// providers.
func nameable(cfg *config.Config) []string {
	var keys []string
	for _, p := range cfg.ModelProviders {
		keys = append(slices.AppendSeq(keys, maps.Values(p.EnvHTTPHeaders)), p.EnvKey)
	}
	return run.EnvPolicy{IgnoreDefaultExcludes: true, Withhold: keys}.Environ(cfg.Environ)
}
