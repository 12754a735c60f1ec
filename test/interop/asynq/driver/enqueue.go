package main

import (
	"encoding/json"
	"time"

	"github.com/hibiken/asynq"
)

// newTask is a task with its options: what is absent is left to asynq.
type newTask struct {
	Type        string            `json:"type"`
	Payload     []byte            `json:"payload"` // null is nil
	Headers     map[string]string `json:"headers"` // asynq 0.26
	TaskID      *string           `json:"taskId"`
	Queue       *string           `json:"queue"`
	MaxRetry    *int              `json:"maxRetry"`
	TimeoutMs   *int64            `json:"timeoutMs"`
	DeadlineMs  *int64            `json:"deadlineMs"`
	UniqueMs    *int64            `json:"uniqueTtlMs"`
	AtMs        *int64            `json:"processAtMs"`
	InMs        *int64            `json:"processInMs"`
	RetentionMs *int64            `json:"retentionMs"`
	Group       *string           `json:"group"`
}

func (t newTask) options() []asynq.Option {
	var options []asynq.Option
	if t.TaskID != nil {
		options = append(options, asynq.TaskID(*t.TaskID))
	}
	if t.Queue != nil {
		options = append(options, asynq.Queue(*t.Queue))
	}
	if t.MaxRetry != nil {
		options = append(options, asynq.MaxRetry(*t.MaxRetry))
	}
	if t.TimeoutMs != nil {
		options = append(options, asynq.Timeout(milliseconds(*t.TimeoutMs)))
	}
	if t.DeadlineMs != nil {
		options = append(options, asynq.Deadline(time.UnixMilli(*t.DeadlineMs)))
	}
	if t.UniqueMs != nil {
		options = append(options, asynq.Unique(milliseconds(*t.UniqueMs)))
	}
	if t.AtMs != nil {
		options = append(options, asynq.ProcessAt(time.UnixMilli(*t.AtMs)))
	}
	if t.InMs != nil {
		options = append(options, asynq.ProcessIn(milliseconds(*t.InMs)))
	}
	if t.RetentionMs != nil {
		options = append(options, asynq.Retention(milliseconds(*t.RetentionMs)))
	}
	if t.Group != nil {
		options = append(options, asynq.Group(*t.Group))
	}
	return options
}

func (d *driver) enqueue(args json.RawMessage) (any, error) {
	var asked newTask
	if err := json.Unmarshal(args, &asked); err != nil {
		return nil, err
	}
	task, err := taskOf(asked)
	if err != nil {
		return nil, err
	}
	return d.client.Enqueue(task, asked.options()...)
}

func milliseconds(ms int64) time.Duration {
	return time.Duration(ms) * time.Millisecond
}
