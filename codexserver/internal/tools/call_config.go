package tools

import (
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// restrict takes out of a call's configuration what calls may not set. It returns
// warnings for the caller.
func (t *Table) restrict(cfg *protocol.Config) (warnings []string, err error) {
	if t.options.TrustedCalls {
		return nil, nil
	}
	cfg.FromCall = true
	cfg.Overrides, warnings, err = config.CallKeys(cfg.Overrides, cfg.Cwd)
	return warnings, err
}
