package appserver

import (
	"cmp"
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/codexmcp/codexmcp/codexserver/appserver/appclient"
	"github.com/codexmcp/codexmcp/codexserver/appserver/apptypes"
	"github.com/codexmcp/codexmcp/codexserver/engine"
	"github.com/codexmcp/codexmcp/codexserver/protocol"
	"github.com/codexmcp/codexmcp/codexserver/setting"
	"github.com/codexmcp/codexmcp/elicit"
)

// A turn that Codex ends because its provider refuses goes on in another engine, which reads the same
// rollout. Later turns come back to Codex, which then reads the rollout in a new app-server.

const (
	// maxFlush is how often the end of the turn is awaited in the rollout, for [rolloutLimit] each.
	maxFlush = 10
	// minAway is how long the other engine has the conversation at least, maxAway at most: a provider
	// may say anything about its limits.
	minAway = time.Minute
	maxAway = 8 * 24 * time.Hour
	// handedOver is the message to the model of the other engine, in which the server speaks.
	handedOver = `<interrupted>
The provider of the model that began your last turn refuses further requests, and you continue the turn here. A call without a result, or whose result is "aborted", may have run or not, in whole or in part. Processes that were still running were ended. No call was repeated. Find out what such a call has done before you repeat it. Then continue with the task.
</interrupted>`
)

// errUnloaded ends an app-server that has a conversation in memory as it was before another engine
// went on with it.
var errUnloaded = errors.New("it was ended to read a conversation anew")

// served says who answers a conversation.
type served struct {
	model, provider string              // of Codex, at the start
	other           engine.Conversation // of another engine, which has the conversation now; nil without
	host            *successor          // of other
	until           time.Time           // Codex's provider refuses until then, as far as is known
	back            *protocol.ModelReroute
}

// limitError is the end of a turn that another engine may go on with.
type limitError struct {
	*engine.TurnError
	turn   *turn
	mark   rolloutMark
	before bool // the turn has not read its prompt
}

// Unwrap implements the method of package errors.
func (e *limitError) Unwrap() error { return e.TurnError }

// limited returns the end of the turn as a *limitError if it is a refusal that another engine need not
// share, else nil.
func (c *conversation) limited(s *turn, mark rolloutMark, err error) *limitError {
	failed, ok := errors.AsType[*engine.TurnError](err)
	if !ok || c.engine.options.Next == nil || c.path == "" || !s.refused() {
		return nil
	}
	return &limitError{TurnError: failed, turn: s, mark: mark}
}

// refused reports whether the provider refused at a limit of the account, an overload, or because of
// the key, and not because of what a request holds.
func (r *turn) refused() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.result == nil || r.aborted != nil || r.result.Status != apptypes.TurnStatusFailed {
		return false
	}
	e := cmp.Or(r.result.Error, r.tr.failed)
	if e == nil {
		return false
	}
	kind, status := appclient.ErrorKind(e)
	return slices.Contains([]string{
		apptypes.CodexErrorInfoUsageLimitExceeded, apptypes.CodexErrorInfoServerOverloaded,
		apptypes.CodexErrorInfoRateLimitExceeded, apptypes.CodexErrorInfoUnauthorized,
	}, kind) || slices.Contains([]int{http.StatusUnauthorized, http.StatusPaymentRequired, http.StatusTooManyRequests}, status)
}

// goOn has another engine go on where the turn ended with err, if that is a *limitError. Do runs the
// rest there. If no engine goes on, the turn ends as Codex ended it.
func (c *conversation) goOn(ctx context.Context, err error, do func(other engine.Conversation, l *limitError) error) error {
	l, ok := errors.AsType[*limitError](err)
	if !ok {
		return err
	}
	other, host, err := c.handOver(ctx, l)
	if err != nil {
		if ctx.Err() != nil {
			return c.failed(ctx, err)
		}
		words := l.Message + "\nThe native engine does not go on: " + err.Error()
		c.host.Emit(protocol.Error{Message: words})
		c.host.Emit(protocol.TaskComplete{})
		return &engine.TurnError{Message: words}
	}
	err = do(other, l)
	if failed, ok := errors.AsType[*engine.TurnError](err); ok {
		return &engine.TurnError{Message: host.failure(failed.Message)}
	}
	return err
}

// handOver opens the conversation in another engine, under the same policies or stricter ones.
func (c *conversation) handOver(ctx context.Context, l *limitError) (other engine.Conversation, host *successor, err error) {
	clearing, stop := context.WithTimeout(ctx, interruptGrace)
	l.turn.cut(clearing)
	l.turn.clear(clearing)
	stop()
	if !l.before && !l.mark.ended(ctx, l.turn.name()) {
		return nil, nil, errors.New("the conversation's file does not have the end of the turn")
	}
	next, err := c.engine.next()
	if err != nil {
		return nil, nil, err
	}
	host = &successor{Host: c.host, before: l.Message}
	to, other, err := c.open(ctx, next, host)
	if err != nil {
		return nil, nil, err
	}
	if t := l.turn.thread.child.find(c.id); t != nil {
		t.mu.Lock()
		t.outdated = true
		t.mu.Unlock()
	}
	c.mu.Lock()
	c.by.other, c.by.host, c.by.until = other, host, time.Now().Add(l.turn.away())
	c.mu.Unlock()
	host.reroute = protocol.ModelReroute{
		FromProvider: c.by.provider, FromModel: c.by.model, ToProvider: to.Provider, ToModel: to.Model, ToEngine: "native",
		Reason: elicit.OneLine(l.Message, 300),
	}
	if k, ok := other.(engine.Keeper); ok { // the way back needs no line: turns of Codex have one of their own
		k.Keep(host.reroute)
	}
	return other, host, nil
}

// open opens the conversation in the next engine with the first provider that can be used there. That
// engine asks the others of the list by itself.
func (c *conversation) open(ctx context.Context, next engine.Resumer, host *successor) (to setting.FailoverTo, other engine.Conversation, err error) {
	var unusable []error
	for _, to = range c.engine.options.Failover.To {
		other, err = c.openWith(ctx, next, host, to)
		if _, ok := errors.AsType[*engine.ConfigError](err); !ok {
			return to, other, err
		}
		unusable = append(unusable, fmt.Errorf("provider %s: %w", to.Provider, err))
	}
	return to, nil, errors.Join(unusable...)
}

// openWith opens the conversation in the next engine with a provider.
func (c *conversation) openWith(ctx context.Context, next engine.Resumer, host *successor, to setting.FailoverTo) (engine.Conversation, error) {
	cfg, doubts, err := c.configFor(to)
	if err != nil {
		return nil, err
	}
	other, err := next.Resume(ctx, c.path, cfg, host)
	if wrong, ok := errors.AsType[*engine.ConfigError](err); ok && strings.Contains(wrong.Error(), "/writable_roots/") {
		doubts = append(doubts, fmt.Sprintf("commands can then not write in %s: %v", elicit.OneLine(strings.Join(cfg.WritableRoots, ", "), 500), wrong.Err))
		cfg.WritableRoots = nil
		other, err = next.Resume(ctx, c.path, cfg, host)
	}
	if err != nil {
		return nil, err
	}
	if err = c.agree(ctx, other, host, cfg, doubts); err != nil {
		return nil, errors.Join(err, other.Close())
	}
	return other, nil
}

// agree returns an error unless the other engine keeps to cfg, and a person agrees to what it cannot
// promise.
func (c *conversation) agree(ctx context.Context, other engine.Conversation, host *successor, cfg protocol.Config, doubts []string) error {
	is, was := slices.Index(policyWords, string(host.policy)), slices.Index(policyWords, string(cfg.ApprovalPolicy))
	if is < 0 || is > was {
		return fmt.Errorf("its approval policy would be %q in place of %q", host.policy, cfg.ApprovalPolicy)
	}
	if w, ok := other.(engine.Writer); ok {
		for _, root := range w.WritableRoots() {
			if !slices.Contains(cfg.WritableRoots, root) {
				return fmt.Errorf("commands could also write in %s", root)
			}
		}
	}
	if len(doubts) == 0 {
		return nil
	}
	var names []string
	for _, to := range c.engine.options.Failover.To {
		names = append(names, elicit.OneLine(to.Model, 100)+" of "+elicit.OneLine(to.Provider, 100))
	}
	q := &elicit.Question{Once: true, Message: fmt.Sprintf("Codex's provider refuses. Shall the turn go on with %s, on the native engine?\n\nWho answers reads the whole conversation. "+
		"The sandbox is %s and the approval policy %s. The engine cannot promise all that Codex did:\n- %s",
		strings.Join(names, ", then "), cfg.Sandbox, cfg.ApprovalPolicy, strings.Join(doubts, "\n- "))}
	if out := c.host.Approve(ctx, q); !out.Decision.Approves() {
		return fmt.Errorf("nobody agreed to what it cannot promise (%s)", strings.Join(doubts, "; "))
	}
	return nil
}

// configFor returns the configuration of the conversation for another engine, and what of the present
// one it does not hold.
func (c *conversation) configFor(to setting.FailoverTo) (cfg protocol.Config, doubts []string, err error) {
	c.mu.Lock()
	now, effort := c.rules, c.effort
	c.mu.Unlock()
	cfg = c.params.asked
	cfg.Profile, cfg.Model, cfg.Cwd, cfg.Continues = "", to.Model, now.cwd, false
	cfg.ReadOnly = cfg.ReadOnly || c.params.readOnly
	if effort != "" {
		cfg.Effort = effort
	}
	cfg.Overrides = maps.Clone(cfg.Overrides)
	if cfg.Overrides == nil {
		cfg.Overrides = map[string]stdjson.RawMessage{}
	}
	maps.DeleteFunc(cfg.Overrides, func(key string, _ stdjson.RawMessage) bool {
		top, _, _ := strings.Cut(key, ".")
		return slices.Contains([]string{"model", "model_provider", "model_providers", "profile", "profiles", "sandbox_mode", "approval_policy", workspaceTable}, top)
	})
	cfg.ApprovalPolicy = protocol.ApprovalPolicy(now.policy)
	if !slices.Contains(policyWords, now.policy) {
		doubts = append(doubts, "the approval policy "+elicit.OneLine(now.policy, 200))
		cfg.ApprovalPolicy = protocol.ApprovalUntrusted
	}
	if now.profile != "" && now.profile != "null" {
		doubts = append(doubts, "the profile of permissions "+elicit.OneLine(now.profile, 200))
	}
	cfg.Sandbox, cfg.WritableRoots = protocol.SandboxReadOnly, nil
	if i := slices.Index(sandboxTypes, now.sandbox.Type); i >= 0 {
		cfg.Sandbox = protocol.SandboxMode(sandboxModes[i])
	} else {
		doubts = append(doubts, "the sandbox "+elicit.OneLine(now.sandbox.Type, 100))
	}
	if cfg.Sandbox != protocol.SandboxDangerFullAccess && network(&now.sandbox) && cfg.Sandbox != protocol.SandboxWorkspaceWrite {
		doubts = append(doubts, "network access without writable folders")
	}
	if cfg.Sandbox == protocol.SandboxWorkspaceWrite {
		cfg.WritableRoots = slices.Clone(now.sandbox.WritableRoots)
	}
	table := map[string]any{
		"writable_roots": []string{}, "network_access": network(&now.sandbox),
		"exclude_slash_tmp": now.sandbox.ExcludeSlashTmp, "exclude_tmpdir_env_var": now.sandbox.ExcludeTmpdirEnvVar,
	}
	for key, value := range map[string]any{"model_provider": to.Provider, workspaceTable: table} {
		if cfg.Overrides[key], err = stdjson.Marshal(value); err != nil {
			return cfg, nil, err
		}
	}
	return cfg, doubts, nil
}

// ended waits until the rollout has the end of a turn, for a bounded time.
func (m rolloutMark) ended(ctx context.Context, turn string) bool {
	over := func(p rolloutPart) bool {
		return slices.ContainsFunc(p.ends, func(e rolloutEnd) bool { return e.turn == turn })
	}
	for range maxFlush {
		if part, err := m.await(ctx, over); err == nil && over(part) {
			return true
		}
	}
	return false
}

// used returns the tokens that Codex used in the turn.
func (r *turn) used() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tr.used
}

// away returns how long Codex's provider refuses, as far as it said.
func (r *turn) away() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	wait := minAway
	if l := r.tr.limits; l != nil {
		for _, w := range []*protocol.RateLimitWindow{l.Primary, l.Secondary} {
			if w != nil && w.UsedPercent >= 100 && w.ResetsInSeconds != nil {
				wait = max(wait, time.Duration(min(max(*w.ResetsInSeconds, 0), int64(maxAway/time.Second)))*time.Second)
			}
		}
	}
	return wait
}

// elsewhere returns the conversation of the other engine if that runs the next turn, else nil. It
// comes back to Codex when the limit is over.
func (c *conversation) elsewhere() engine.Conversation {
	c.mu.Lock()
	other, host, until := c.by.other, c.by.host, c.by.until
	c.mu.Unlock()
	if other == nil {
		return nil
	}
	host.own.Store(true)
	if c.engine.options.Failover.Stay || time.Now().Before(until) || c.engine.unload(c.id) != nil {
		return other
	}
	if err := other.Close(); err != nil {
		c.engine.options.logger().Warn("closing a conversation of the other engine", "error", err)
	}
	back := host.reroute.Back("codex", "the limit may be over")
	c.mu.Lock()
	c.by.other, c.by.host, c.by.back = nil, nil, &back
	c.mu.Unlock()
	return nil
}

// unload ends the app-server if it has a conversation in memory as it was before another engine went
// on with it. It returns an error while the app-server does something else.
func (e *Engine) unload(id string) error {
	ch := e.now()
	if ch == nil {
		return nil
	}
	t := ch.find(id)
	if t == nil {
		return nil
	}
	t.mu.Lock()
	outdated := t.outdated
	t.mu.Unlock()
	if !outdated {
		return nil
	}
	if ch.busy() || ch.beginning() {
		return &engine.RefusedError{Err: errors.New("the conversation went on in the native engine, and Codex can read it anew only while no other conversation has a turn; try again later")}
	}
	ch.kill(errUnloaded)
	return nil
}

// now returns the app-server that runs, or nil.
func (e *Engine) now() *child {
	e.mu.Lock()
	defer e.mu.Unlock()
	l := e.launch
	if l == nil || l.over() {
		return nil
	}
	select {
	case <-l.done:
		return l.child
	default:
		return nil
	}
}

// next returns the engine that goes on.
func (e *Engine) next() (engine.Resumer, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.other == nil {
		other, err := e.options.Next(e.programs.Folders)
		if err != nil {
			return nil, err
		}
		e.other = other
	}
	return e.other, nil
}

// reach returns the folders that commands could write, those of the engine that goes on included.
func (e *Engine) reach() []string {
	all := e.programs.Folders()
	e.mu.Lock()
	other := e.other
	e.mu.Unlock()
	if d, ok := other.(engine.Describer); ok && d.Traits().Reach != nil {
		all = append(slices.Clip(all), d.Traits().Reach()...)
	}
	return all
}
