package tools

import (
	"slices"

	"github.com/codexmcp/codexmcp/mcptypes"
)

// Logs reports whether a client that wants log messages of the level least and above gets
// one of the level l.
func Logs(least, l mcptypes.LoggingLevel) bool {
	levels := []mcptypes.LoggingLevel{
		mcptypes.LoggingLevelDebug, mcptypes.LoggingLevelInfo, mcptypes.LoggingLevelNotice, mcptypes.LoggingLevelWarning,
		mcptypes.LoggingLevelError, mcptypes.LoggingLevelCritical, mcptypes.LoggingLevelAlert, mcptypes.LoggingLevelEmergency,
	}
	return slices.Index(levels, l) >= slices.Index(levels, least)
}
