package appserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/engine"
)

const versionLimit = 10 * time.Second

// Report describes the installed Codex before it is used.
type Report struct {
	// Path is the program; "" if none was found.
	Path string `json:"path,omitzero"`
	// Version is a version such as "0.169.0". Needed is the oldest that works.
	Version string `json:"version,omitzero"`
	Needed  string `json:"needed"`
	// Home is Codex's folder.
	Home string `json:"codexHome,omitzero"`
	// Account is nil if the app-server could not be asked.
	Account *Account `json:"account,omitzero"`
	// Model, Provider, ApprovalPolicy and Sandbox are as configured; "" if not.
	Model          string `json:"model,omitzero"`
	Provider       string `json:"provider,omitzero"`
	ApprovalPolicy string `json:"approvalPolicy,omitzero"`
	Sandbox        string `json:"sandbox,omitzero"`
	// Err is why this Codex cannot be used: a [*NotFoundError], a [*TooOldError],
	// [ErrNotSignedIn], or an error of the app-server. It is nil if Codex is usable.
	Err error `json:"-"`
	// Problem is Err's text.
	Problem string `json:"problem,omitzero"`
}

// Usable reports whether the engine can start conversations.
func (r *Report) Usable() bool { return r.Err == nil }

// Check starts Codex, which takes about half a second, and reports what it finds. Codex
// keeps running for the first conversation.
func (e *Engine) Check(ctx context.Context) *Report {
	r := &Report{Needed: appclient.Oldest().String()}
	r.Err = e.check(ctx, r)
	if r.Err != nil {
		r.Problem = r.Err.Error()
	}
	return r
}

func (e *Engine) check(ctx context.Context, r *Report) error {
	var err error
	if r.Path, err = findFirst(e.programs, e.options.Path); err != nil {
		return err
	}
	c, err := e.child(ctx)
	if err != nil {
		if v, e := e.programVersion(ctx, r.Path); e == nil {
			r.Version = v.String()
		}
		return err
	}
	r.Version, r.Home = c.version.String(), c.home
	if c.process != nil {
		r.Path = c.process.path
	}
	if r.Home == "" {
		r.Home, _ = e.home() // only shown
	}
	config, err := c.config(ctx, "")
	var broken *engine.ConfigError
	switch {
	case errors.As(err, &broken): // the app-server runs, but cannot start a thread
		return fmt.Errorf("codex cannot use its configuration: %s", strings.Join(strings.Fields(broken.Err.Error()), " "))
	case err == nil:
		for key, to := range map[string]*string{
			"model": &r.Model, "model_provider": &r.Provider,
			"approval_policy": &r.ApprovalPolicy, "sandbox_mode": &r.Sandbox,
		} {
			_ = json.Unmarshal(config[key], to) // stays empty if it is missing or not a string
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
