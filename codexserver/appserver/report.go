package appserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/engine"
)

const versionLimit = 10 * time.Second

// Report is what there is to know about a Codex before it is used: for the
// choice of an engine, and for people.
type Report struct {
	// Path is the program, "" if there is none or an app-server was dialled.
	Path string `json:"path,omitzero"`
	// Version is such as "0.169.0"; Needed is the oldest that will do.
	Version string `json:"version,omitzero"`
	Needed  string `json:"needed"`
	// Home is Codex's folder.
	Home string `json:"codexHome,omitzero"`
	// Account is nil where the app-server did not get so far.
	Account *Account `json:"account,omitzero"`
	// Model, Provider, ApprovalPolicy and Sandbox are as configured, "" where
	// nothing is.
	Model          string `json:"model,omitzero"`
	Provider       string `json:"provider,omitzero"`
	ApprovalPolicy string `json:"approvalPolicy,omitzero"`
	Sandbox        string `json:"sandbox,omitzero"`
	// Err is why this Codex cannot be used: a [*NotFoundError], a
	// [*TooOldError], [ErrNotSignedIn], or what the app-server said. It is nil
	// when it can.
	Err error `json:"-"`
	// Problem is Err's text.
	Problem string `json:"problem,omitzero"`
}

// Usable reports whether conversations can be had.
func (r *Report) Usable() bool { return r.Err == nil }

// Check looks at the Codex that the engine would drive: it starts it, which
// takes about half a second, and leaves it running for the first conversation.
func (e *Engine) Check(ctx context.Context) *Report {
	r := &Report{Needed: oldest.String()}
	r.Err = e.check(ctx, r)
	if r.Err != nil {
		r.Problem = r.Err.Error()
	}
	return r
}

func (e *Engine) check(ctx context.Context, r *Report) error {
	if e.options.Dial == nil {
		var err error
		if r.Path, err = Find(e.options.Path); err != nil {
			return err
		}
	}
	c, err := e.child(ctx)
	if err != nil {
		if v, e := programVersion(ctx, r.Path, e.environment()); r.Path != "" && e == nil {
			r.Version = v.String()
		}
		return err
	}
	r.Version, r.Home = c.version.String(), c.home
	r.Path = cmp.Or(c.path, r.Path)
	if r.Home == "" {
		r.Home, _ = e.home() // of no more than the report
	}
	config, err := c.config(ctx, "")
	var broken *engine.ConfigError
	switch {
	case errors.As(err, &broken): // it runs, but no thread will
		return fmt.Errorf("codex cannot use its configuration: %s", strings.Join(strings.Fields(broken.Err.Error()), " "))
	case err == nil:
		for key, to := range map[string]*string{
			"model": &r.Model, "model_provider": &r.Provider,
			"approval_policy": &r.ApprovalPolicy, "sandbox_mode": &r.Sandbox,
		} {
			_ = json.Unmarshal(config[key], to) // absent, null or no word: left empty
		}
	}
	if c.policy != "" {
		r.ApprovalPolicy = c.policy
	}
	if r.Account, err = c.account(ctx); err != nil {
		return err
	}
	if r.Account.Method == "" && r.Account.Required {
		return ErrNotSignedIn
	}
	return nil
}
