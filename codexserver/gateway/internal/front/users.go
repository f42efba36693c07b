package front

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

// user is what a front knows of a user.
type user struct {
	bodies *mcphttp.Bodies
	open   map[*admitted]bool // the open requests
}

// The limits for each user. They are those of a worker, see [mcphttp.Options].
const (
	maxOpen = 256      // requests
	maxBody = 64 << 20 // bytes
)

// admitted is an open request that the guard has admitted.
type admitted struct {
	principal mcphttp.Principal // as the guard has returned it
	headers   http.Header       // those that identify the sender
	user      *user
	end       context.CancelCauseFunc
}

// errRevoked is the cause of the end of a request whose sender may no longer send it.
var errRevoked = errors.New("the sender may no longer send this request")

const revokedText = "the operator of the server has ended your access while this request was open. The request may " +
	"have taken effect"

// enter notes an open request until [Front.leave], and gives it a context that ends when its sender may no longer send
// it. If it refuses the request, it has answered it, and ok is false.
func (f *Front) enter(w http.ResponseWriter, r *http.Request, a *admitted) (_ *http.Request, ok bool) {
	ctx, end := context.WithCancelCause(r.Context())
	a.end = end
	f.mu.Lock()
	a.user = f.users[a.principal.Name]
	if ok = a.user != nil && len(a.user.open) < maxOpen; ok {
		a.user.open[a] = true
	}
	f.mu.Unlock()
	switch {
	case ok:
		return r.WithContext(ctx), true
	case a.user == nil:
		http.Error(w, "the user is not configured", http.StatusForbidden)
	default:
		w.Header().Set("Retry-After", "1")
		http.Error(w, "too many of your requests are open; send this one again when another has ended",
			http.StatusTooManyRequests)
	}
	end(nil)
	return r, false
}

// leave ends what [Front.enter] has begun.
func (f *Front) leave(a *admitted) {
	a.end(nil)
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(a.user.open, a)
}

// setUsers replaces the users, and returns the open requests of those before.
func (f *Front) setUsers(principals map[string]settings.Principal) (open []*admitted) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := f.users
	f.users = map[string]*user{}
	for name := range principals {
		f.users[name] = cmp.Or(before[name], &user{mcphttp.NewBodies(maxBody), map[*admitted]bool{}})
	}
	f.reloads.Add(1)
	for _, u := range before {
		open = slices.AppendSeq(open, maps.Keys(u.open))
	}
	return open
}

// Reload replaces the users, and ends the open requests of those who may no longer send them. The guard
// must know the new users already.
func (f *Front) Reload(ctx context.Context, principals map[string]settings.Principal) {
	for _, a := range f.setUsers(principals) {
		f.check(ctx, a)
	}
}

// check ends an open request if its sender may no longer send it.
func (f *Front) check(ctx context.Context, a *admitted) {
	f.mu.Lock()
	known := f.users[a.principal.Name] == a.user
	f.mu.Unlock()
	if !known || !f.o.Still(ctx, a.headers, a.principal) {
		a.end(errRevoked)
	}
}
