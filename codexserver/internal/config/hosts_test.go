package config_test

import (
	"testing"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/codexmcp/codexmcp/internal/testenv/must"
)

// TestAskHosts says what switches the network by the host on, and sorts the rules.
func TestAskHosts(t *testing.T) {
	for file, want := range map[string]bool{
		"": false, `approvals.hosts = "ask"`: true, `approvals.allow = [["curl", "https://a.com"]]`: false,
		`approvals.allow = [{host = "a.com"}]`: true, `approvals.deny = [{host = "a.com"}]`: true, `approvals.ask = [{host = "a.com"}]`: true,
	} {
		s, _, err := settings(t, file)
		must.OK(t, err)
		must.Equal(t, file, want, s.Approvals.AskHosts())
	}
	s, _, err := settings(t, `approvals.allow = [{host = "a.com"}, ["go"], {host = "*.b.com"}]
approvals.deny = [["git", "push"], {host = "c.com"}]
approvals.ask = [{host = "d.com"}, ["ssh"]]`)
	must.OK(t, err)
	must.Equal(t, "rules", approval.Rules{
		Allow: []approval.Rule{{Command: []string{"go"}}}, Deny: [][]string{{"git", "push"}}, Ask: [][]string{{"ssh"}},
		Hosts: approval.HostRules{Allow: []string{"a.com", "*.b.com"}, Deny: []string{"c.com"}, Ask: []string{"d.com"}},
	}, s.Approvals.Rules())
}
