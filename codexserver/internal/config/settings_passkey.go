package config

import (
	"fmt"
	"maps"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/internal/passkey"
	"github.com/codexmcp/codexmcp/codexserver/setting"
)

// checkPasskey returns an error if a place other than the page is to be asked while only passkeys
// approve: what it approves would not count.
func (a *Approvals) checkPasskey() error {
	if !a.Passkey {
		return nil
	}
	const only = "approvals.passkey: it needs %s = %q, because only the page takes signatures; found %q"
	if a.Where != setting.WherePage {
		return fmt.Errorf(only+" (--approvals sets it too)", "approvals.where", setting.WherePage, a.Where)
	}
	for _, name := range slices.Sorted(maps.Keys(a.Clients)) {
		if a.Clients[name] != setting.WherePage {
			return fmt.Errorf(only, "approvals.clients."+name, setting.WherePage, a.Clients[name])
		}
	}
	if a.PageOrigin != "" {
		if _, err := passkey.NewParty(a.PageOrigin); err != nil {
			return fmt.Errorf("approvals.page_origin: %w", err)
		}
	}
	return nil
}
