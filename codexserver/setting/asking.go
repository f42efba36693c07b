package setting

// Asking says who is asked for approvals. The zero value asks the client, and the page if there is
// one.
type Asking struct {
	// Where is who is asked. Default: [WhereBoth].
	Where Where
	// Clients is Where for single clients, by the name in their clientInfo. A client chooses its
	// name itself, and so only where it is asked. None by default.
	Clients map[string]Where
	// Terminal says that the client is a terminal, which decisions then name.
	Terminal bool
}

// Where is who is asked for approvals.
type Where string

// The places. The page stands for every desk of package approval.
const (
	WhereClient Where = "client" // the client; codex-mcp opens no page
	WherePage   Where = "page"   // the page; the client is never asked
	WhereBoth   Where = "both"   // the client and the page
)

// Of returns where a client with a name is asked.
func (a Asking) Of(client string) Where {
	if w := a.Clients[client]; w != "" {
		return w
	}
	return a.Where
}

// CountsInstant reports whether an approval of a client with a name counts that came faster than a
// person can read. It does not where the client's Where is given as [WhereBoth].
func (a Asking) CountsInstant(client string) bool { return a.Of(client) != WhereBoth }

// Pages reports whether a client is asked on the page.
func (a Asking) Pages() bool {
	for _, w := range a.Clients {
		if w == WherePage || w == WhereBoth {
			return true
		}
	}
	return a.Where == WherePage || a.Where == WhereBoth
}
