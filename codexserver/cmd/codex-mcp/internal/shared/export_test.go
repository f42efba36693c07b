package shared

import "time"

// SetPatience sets how long a server may take to answer.
func (f *Folder) SetPatience(d time.Duration) { f.patience = d }

// Claim makes the folder name this process as the server of a name.
func (f *Folder) Claim(name string) error { return f.claim(name) }
