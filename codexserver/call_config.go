package codexserver

import (
	"github.com/codexmcp/codexmcp/codexserver/internal/config"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
)

// restrict takes out of a call's configuration what is not for calls. It
// returns what the caller should know of that.
func (ss *session) restrict(cfg *protocol.Config) (warnings []string, err error) {
	if ss.server.options.TrustedCalls {
		return nil, nil
	}
	cfg.FromCall = true
	cfg.Overrides, warnings, err = config.CallKeys(cfg.Overrides, cfg.Cwd)
	return warnings, err
}

// warn puts warnings into the call's result and among its events.
func (c *call) warn(h *host, warnings []string) {
	for _, w := range warnings {
		c.session.log.Warn(w)
		c.excuse(w)
		h.EmitAs(c.submission(), protocol.BackgroundEvent{Message: w})
	}
}
