package tools

import (
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// restrict removes keys that calls may not set from a call's configuration. It returns
// warnings for the caller.
func (t *Table) restrict(cfg *protocol.Config) (warnings []string, err error) {
	if t.options.TrustedCalls {
		return nil, nil
	}
	cfg.FromCall = true
	cfg.Overrides, warnings, err = config.CallKeys(cfg.Overrides, cfg.Cwd)
	return warnings, err
}
