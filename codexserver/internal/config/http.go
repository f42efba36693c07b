package config

import (
	"fmt"
	"slices"
	"time"

	"github.com/codexmcp/codexmcp/internal/text"
)

// HTTP has the settings that codex-mcp http and codex-mcp-gateway share.
type HTTP struct {
	// UnlockedArguments are the arguments of [LockedOverHTTP] that a call may choose.
	UnlockedArguments []string
	// Hosts are the host names that clients may use, in addition to those of this
	// machine.
	Hosts []string
	// Origins are the origins of web pages that may use the server. If it is empty, only
	// pages of this machine may.
	Origins []string
	// Drain is how long work in progress may continue after a signal.
	Drain time.Duration
	// Gateway are the keys that are set and only codex-mcp-gateway knows. It parses them.
	Gateway []string
}

// LockedOverHTTP are the arguments of the tool codex that a call over HTTP may not choose,
// unless the configuration unlocks them. They could loosen the sandbox or reduce approvals.
// While config is locked, web-search is locked too. Callers must not change it.
var LockedOverHTTP = []string{"approval-policy", "config", "profile", "sandbox"}

// Locked returns the arguments that calls may not choose: those in everywhere, and those of
// [LockedOverHTTP] that are not unlocked.
func (h *HTTP) Locked(everywhere []string) []string {
	locked := slices.Clone(everywhere)
	for _, name := range LockedOverHTTP {
		if !slices.Contains(h.UnlockedArguments, name) && !slices.Contains(locked, name) {
			locked = append(locked, name)
		}
	}
	return locked
}

// isEmpty reports whether a value is missing, an empty text, or a table of empty texts.
func isEmpty(value any) bool {
	table, is := value.(layer)
	for _, v := range table {
		if v != "" {
			return false
		}
	}
	return is || value == nil || value == ""
}

// CheckUnlocked checks the value of a key with unlocked arguments.
func CheckUnlocked(key string, unlocked []string) error {
	for _, name := range unlocked {
		if !slices.Contains(LockedOverHTTP, name) {
			return fmt.Errorf("%s: %q is not one of %s", key, name, text.Or(LockedOverHTTP))
		}
	}
	return nil
}
