package front

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"

	"github.com/codexmcp/codexmcp/codexserver/gateway/internal/settings"
	"github.com/codexmcp/codexmcp/internal/mcphttp"
)

// admitted is an open request that the guard has admitted.
type admitted struct {
	principal mcphttp.Principal // as the guard has returned it
	headers   http.Header       // those that identify the sender
	end       context.CancelCauseFunc
}

// errRevoked is the cause of the end of a request whose sender may no longer send it.
var errRevoked = errors.New("the sender may no longer send this request")

const revokedText = "the operator of the server has ended your access while this request was open. The request may have taken effect"

// enter notes an open request until leave is called, and returns the usage of its sender, or nil if that is no
// user. The context of the request ends when its sender may no longer send it.
func (f *Front) enter(r *http.Request, a *admitted) (_ *http.Request, used *usage, leave func()) {
	ctx, end := context.WithCancelCause(r.Context())
	a.end = end
	name := a.principal.Name
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.users.Get(name); !known {
		end(nil)
		return r, nil, nil
	}
	if f.usage[name] == nil {
		f.usage[name] = newUsage()
	}
	f.admitted[a] = true
	return r.WithContext(ctx), f.usage[name], func() {
		end(nil)
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.admitted, a)
	}
}

// Reload replaces the users, and ends the open requests of those who may no longer send them. The guard
// must know the new users already.
func (f *Front) Reload(ctx context.Context, principals map[string]settings.Principal) {
	f.mu.Lock()
	f.users.Set(principals)
	f.reloads.Add(1)
	open := slices.Collect(maps.Keys(f.admitted))
	for name := range f.usage {
		if _, known := principals[name]; !known {
			delete(f.usage, name)
		}
	}
	f.mu.Unlock()
	for _, a := range open {
		f.check(ctx, a)
	}
}

// check ends an open request if its sender may no longer send it.
func (f *Front) check(ctx context.Context, a *admitted) {
	if !f.may(ctx, a) {
		a.end(errRevoked)
	}
}

// may reports whether the sender of an open request may send it now.
func (f *Front) may(ctx context.Context, a *admitted) bool {
	if _, known := f.users.Get(a.principal.Name); !known {
		return false
	}
	return f.o.Still == nil || f.o.Still(ctx, a.headers, a.principal)
}
