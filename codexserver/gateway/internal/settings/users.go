package settings

import "sync/atomic"

// Users are the principals by name. They may be replaced, as a whole, while the program runs. The zero
// value has none. It is safe for concurrent use.
type Users struct {
	all atomic.Pointer[map[string]Principal]
}

// Set replaces the users. The caller must not change the map any more.
func (u *Users) Set(all map[string]Principal) { u.all.Store(&all) }

// All returns the users. Callers must not change the map.
func (u *Users) All() map[string]Principal {
	if all := u.all.Load(); all != nil {
		return *all
	}
	return nil
}

// Get returns a user.
func (u *Users) Get(name string) (p Principal, known bool) {
	p, known = u.All()[name]
	return p, known
}
