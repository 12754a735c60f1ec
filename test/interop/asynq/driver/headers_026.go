//go:build asynq026

package main

import "github.com/hibiken/asynq"

func taskOf(asked newTask) (*asynq.Task, error) {
	if asked.Headers == nil {
		return asynq.NewTask(asked.Type, asked.Payload), nil
	}
	return asynq.NewTaskWithHeaders(asked.Type, asked.Payload, asked.Headers), nil
}

func headersOf(task *asynq.Task) map[string]string {
	return task.Headers()
}
