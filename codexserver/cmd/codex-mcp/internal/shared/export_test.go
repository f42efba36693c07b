package shared

import "time"

// SetPatience sets how long a server may take to answer.
func (f *Folder) SetPatience(d time.Duration) { f.patience = d }
