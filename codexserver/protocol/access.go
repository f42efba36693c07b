package protocol

import "slices"

// Access is what a conversation may do beyond the configuration of its engine, because its
// caller asked for it. The zero value is nothing.
type Access struct {
	// Folder is the working folder, an absolute path without symbolic links.
	Folder string `json:"folder,omitzero"`
	// Mode is the sandbox mode if it is wider than the configured one. It is also set if
	// it is [SandboxWorkspaceWrite], because the caller chose Folder.
	Mode SandboxMode `json:"mode,omitzero"`
	// Policy is the approval policy if commands run outside a sandbox and it asks less than the
	// configuration does, or Mode is [SandboxDangerFullAccess].
	Policy ApprovalPolicy `json:"policy,omitzero"`
	// Network is true if commands reach the network and those of the configuration do not.
	Network bool `json:"network,omitzero"`
	// WebSearch is true if the model searches the web and the configuration does not let it.
	WebSearch bool `json:"web_search,omitzero"`
	// Roots are absolute paths of folders besides Folder, also temporary ones, that commands can
	// write and the configuration does not name.
	Roots []string `json:"roots,omitempty"`
	// Provider is the model provider, with its address, if it is another one than the configured.
	Provider string `json:"provider,omitzero"`
	// Beside are other conversations that run, whose commands or those of this one could put a link in the place of a
	// folder of the other.
	Beside []Overlap `json:"beside,omitempty"`
}

// Overlap has a folder that a conversation writes and one that another writes. One lies in the other. Both are absolute
// paths without symbolic links.
type Overlap struct {
	Folder string `json:"folder"`
	Other  string `json:"other"`
}

// IsZero reports whether a is nothing. A folder alone is nothing.
func (a Access) IsZero() bool {
	a.Folder = ""
	return a.Equal(Access{})
}

// Equal reports whether a and b are the same.
func (a Access) Equal(b Access) bool {
	return a.Folder == b.Folder && a.Mode == b.Mode && a.Policy == b.Policy && a.Network == b.Network &&
		a.WebSearch == b.WebSearch && a.Provider == b.Provider &&
		slices.Equal(a.Roots, b.Roots) && slices.Equal(a.Beside, b.Beside)
}
