package config

import (
	"errors"

	"github.com/codexmcp/codexmcp/codexserver/approval"
	"github.com/go-json-experiment/json"
)

// Rule is one of approvals.allow: a list of words, or a table
// { command = […], outside = true }.
type Rule approval.Rule

// UnmarshalJSON implements [json.Unmarshaler].
func (r *Rule) UnmarshalJSON(b []byte) error {
	var table struct {
		Command []string `json:"command"`
		Outside bool     `json:"outside"`
	}
	var words []string
	if json.Unmarshal(b, &words) == nil {
		*r = Rule{Command: words}
		return nil
	}
	if json.Unmarshal(b, &table, json.RejectUnknownMembers(true)) != nil || len(table.Command) == 0 {
		return errors.New(`want a list of words such as ["go", "test"], or {command = ["go", "test"], outside = true}`)
	}
	*r = Rule{Command: table.Command, Outside: table.Outside}
	return nil
}
