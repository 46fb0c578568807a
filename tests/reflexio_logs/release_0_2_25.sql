BEGIN;
CREATE TABLE requests (
    request_id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    created_at TEXT NOT NULL,
    source TEXT NOT NULL DEFAULT '',
    agent_version TEXT NOT NULL DEFAULT '',
    session_id TEXT,
    metadata TEXT NOT NULL DEFAULT '{}'
);
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u01-s01-0', 'u01', '2026-11-03T09:00:00+00:00', 'prod_with_reflexio', 'support-agent@2.0.0', 's01', '{"reflexio_retrieval_enabled": true, "tier": "gold"}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u01-s02-0', 'u01', '2026-11-05T10:00:01+00:00', 'prod_with_reflexio', 'support-agent@2.0.0', 's02', '{"reflexio_retrieval_enabled": true}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u01-s02-1', 'u01', '2026-11-05T10:05:01+00:00', 'prod_with_reflexio', 'support-agent@2.0.0', 's02', '{"reflexio_retrieval_enabled": true}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u01-s-shared-1-0', 'u01', '2026-11-06T11:00:02+00:00', 'prod_with_reflexio', 'support-agent@2.0.0', 's-shared-1', '{"reflexio_retrieval_enabled": true}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u02-s03-0', 'u02', '2026-11-04T12:00:03+00:00', 'prod_without_reflexio', 'support-agent@2.0.0', 's03', '{"reflexio_retrieval_enabled": false}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u02-s04-0', 'u02', '2026-11-06T13:00:04+00:00', 'prod_without_reflexio', 'support-agent@2.0.0', 's04', '{"reflexio_retrieval_enabled": false}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u02-s04-1', 'u02', '2026-11-06T13:05:04+00:00', 'prod_without_reflexio', 'support-agent@2.0.0', 's04', '{"reflexio_retrieval_enabled": false}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u02-s-shared-2-0', 'u02', '2026-11-07T14:00:05+00:00', 'prod_with_reflexio', 'support-agent@2.0.0', 's-shared-2', '{"reflexio_retrieval_enabled": true}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u03-s05-0', 'u03', '2026-11-07T15:00:06+00:00', 'prod_with_reflexio', 'support-agent@2.0.0', 's05', '{"reflexio_retrieval_enabled": "true", "tier": "gold"}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u03-s-shared-2-0', 'u03', '2026-11-08T16:00:07+00:00', 'prod_without_reflexio', 'support-agent@2.0.0', 's-shared-2', '{"reflexio_retrieval_enabled": false}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u03-s06-0', 'u03', '2026-11-09T09:00:08+00:00', '', 'support-agent@2.0.0', 's06', '{}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u03-s06-1', 'u03', '2026-11-09T09:05:08+00:00', '', 'support-agent@2.0.0', 's06', '{}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u03-s06-2', 'u03', '2026-11-09T09:10:08+00:00', '', 'support-agent@2.0.0', 's06', '{}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u04-s07-0', 'u04', '2026-11-08T10:00:09+00:00', 'prod_with_reflexio', 'support-agent@2.0.0', 's07', '{"reflexio_retrieval_enabled": 1}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u04-s08-0', 'u04', '2026-11-10T11:00:10+00:00', 'prod_without_reflexio', 'support-agent@2.0.0', 's08', '{"reflexio_retrieval_enabled": 0}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u04-s09-0', 'u04', '2026-11-12T12:00:11+00:00', 'beta', 'support-agent@2.0.0', 's09', '{"reflexio_retrieval_enabled": null}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u05-s-shared-1-0', 'u05', '2026-11-09T13:00:12+00:00', 'prod_without_reflexio', 'support-agent@2.0.0', 's-shared-1', '{"reflexio_retrieval_enabled": false, "tier": "gold"}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u05-s10-0', 'u05', '2026-11-11T14:00:13+00:00', 'prod_without_reflexio', 'support-agent@2.0.0', 's10', '{"reflexio_retrieval_enabled": false}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u05-s10-1', 'u05', '2026-11-11T14:05:13+00:00', 'prod_without_reflexio', 'support-agent@2.0.0', 's10', '{"reflexio_retrieval_enabled": false}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u05-s11-0', 'u05', '2026-11-13T15:00:14+00:00', 'prod_without_reflexio', 'support-agent@2.0.0', 's11', '{"reflexio_retrieval_enabled": "False"}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u06-s12-0', 'u06', '2026-11-10T16:00:15+00:00', 'prod_with_reflexio', 'support-agent@2.0.0', 's12', '{"reflexio_retrieval_enabled": true}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u06-s12-1', 'u06', '2026-11-10T16:05:15+00:00', 'prod_with_reflexio', 'support-agent@2.0.0', 's12', '{"reflexio_retrieval_enabled": true}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u06-s13-0', 'u06', '2026-11-14T09:00:16+00:00', 'prod_with_reflexio', 'support-agent@2.0.0', 's13', '{"reflexio_retrieval_enabled": true}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u06-s14-0', 'u06', '2026-11-17T10:00:17+00:00', 'prod_with_reflexio', 'support-agent@2.1.0', 's14', '{"reflexio_retrieval_enabled": true}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u07-s15-0', 'u07', '2026-11-12T11:00:18+00:00', 'prod_without_reflexio', 'support-agent@2.0.0', 's15', '{"reflexio_retrieval_enabled": false, "tier": "gold"}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u07-s16-0', 'u07', '2026-11-17T12:00:19+00:00', 'prod_without_reflexio', 'support-agent@2.1.0', 's16', '{"reflexio_retrieval_enabled": false}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u07-s16-1', 'u07', '2026-11-17T12:05:19+00:00', 'prod_without_reflexio', 'support-agent@2.1.0', 's16', '{"reflexio_retrieval_enabled": false}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u07-s17-0', 'u07', '2026-11-18T13:00:20+00:00', 'prod_with_reflexio', 'support-agent@2.1.0', 's17', '{"reflexio_retrieval_enabled": true}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u08-s18-0', 'u08', '2026-11-18T14:00:21+00:00', 'prod_with_reflexio', 'support-agent@2.1.0', 's18', '{"reflexio_retrieval_enabled": true}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u08-s18-1', 'u08', '2026-11-18T14:05:21+00:00', 'prod_with_reflexio', 'support-agent@2.1.0', 's18', '{"reflexio_retrieval_enabled": true}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u08-s19-0', 'u08', '2026-11-19T15:00:22+00:00', 'prod_without_reflexio', 'support-agent@2.1.0', 's19', '{"reflexio_retrieval_enabled": false}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u08-s20-0', 'u08', '2026-11-20T16:00:23+00:00', 'prod_with_reflexio', 'support-agent@2.1.0', 's20', '{"reflexio_retrieval_enabled": true}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u09-s21-0', 'u09', '2026-11-19T09:00:24+00:00', 'prod_with_reflexio', 'support-agent@2.1.0', 's21', '{"reflexio_retrieval_enabled": true, "tier": "gold"}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u09-s22-0', 'u09', '2026-11-21T10:00:25+00:00', 'prod_without_reflexio', 'support-agent@2.1.0', 's22', '{"reflexio_retrieval_enabled": false}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u09-s22-1', 'u09', '2026-11-21T10:05:25+00:00', 'prod_without_reflexio', 'support-agent@2.1.0', 's22', '{"reflexio_retrieval_enabled": false}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u09-s23-0', 'u09', '2026-11-22T11:00:26+00:00', '', 'support-agent@2.1.0', 's23', '{}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u10-s24-0', 'u10', '2026-11-20T12:00:27+00:00', 'prod_without_reflexio', 'support-agent@2.1.0', 's24', 'null');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u10-s25-0', 'u10', '2026-11-22T13:00:28+00:00', 'prod_with_reflexio', 'support-agent@2.1.0', 's25', '[true]');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u10-s26-0', 'u10', '2026-11-23T14:00:29+00:00', 'prod_with_reflexio', 'support-agent@2.1.0', 's26', '{"reflexio_retrieval_enabled": true}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u10-s26-1', 'u10', '2026-11-23T14:05:29+00:00', 'prod_with_reflexio', 'support-agent@2.1.0', 's26', '{"reflexio_retrieval_enabled": true}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u11-s27-0', 'u11', '2026-11-23T15:00:30+00:00', 'prod_with_reflexio', 'support-agent@2.1.0', 's27', '{"reflexio_retrieval_enabled": true, "tier": "gold"}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u11-s28-0', 'u11', '2026-11-24T16:00:31+00:00', 'prod_without_reflexio', 'support-agent@2.1.0', 's28', '{"reflexio_retrieval_enabled": false}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u11-s29-0', 'u11', '2026-11-25T09:00:32+00:00', 'prod_with_reflexio', 'support-agent@2.1.0', 's29', '{"reflexio_retrieval_enabled": true}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u11-s29-1', 'u11', '2026-11-25T09:05:32+00:00', 'prod_with_reflexio', 'support-agent@2.1.0', 's29', '{"reflexio_retrieval_enabled": true}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u11-s29-2', 'u11', '2026-11-25T09:10:32+00:00', 'prod_with_reflexio', 'support-agent@2.1.0', 's29', '{"reflexio_retrieval_enabled": true}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u12-s30-0', 'u12', '2026-11-24T10:00:33+00:00', 'prod_without_reflexio', 'support-agent@2.1.0', 's30', '{"reflexio_retrieval_enabled": false}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u12-s31-0', 'u12', '2026-11-25T11:00:34+00:00', 'prod_with_reflexio', 'support-agent@2.1.0', 's31', '');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u12-s32-0', 'u12', '2026-11-26T12:00:35+00:00', 'prod_without_reflexio', 'support-agent@2.1.0', 's32', '{"reflexio_retrieval_enabled": false}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u01-s33-0', 'u01', '2026-11-26T13:00:36+00:00', 'prod_with_reflexio', 'support-agent@2.1.0', 's33', '{"reflexio_retrieval_enabled": true, "tier": "gold"}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u02-s34-0', 'u02', '2026-11-27T14:00:37+00:00', 'prod_without_reflexio', 'support-agent@2.1.0', 's34', '{"reflexio_retrieval_enabled": false}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u02-s34-1', 'u02', '2026-11-27T14:05:37+00:00', 'prod_without_reflexio', 'support-agent@2.1.0', 's34', '{"reflexio_retrieval_enabled": false}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u03-s35-0', 'u03', '2026-11-28T15:00:38+00:00', 'beta', 'support-agent@2.1.0', 's35', '{"reflexio_retrieval_enabled": "yes"}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u04-s36-0', 'u04', '2026-11-28T16:00:39+00:00', 'prod_with_reflexio', 'support-agent@2.1.0', 's36', '{"reflexio_retrieval_enabled": true}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u05-s37-0', 'u05', '2026-11-29T09:00:40+00:00', 'prod_without_reflexio', 'support-agent@2.1.0', 's37', '{"reflexio_retrieval_enabled": false}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u06-s38-0', 'u06', '2026-11-04T10:00:41+00:00', 'prod_with_reflexio', 'support-agent@2.0.0', 's38', '{"reflexio_retrieval_enabled": true}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u06-s38-1', 'u06', '2026-11-04T10:05:41+00:00', 'prod_with_reflexio', 'support-agent@2.0.0', 's38', '{"reflexio_retrieval_enabled": true}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u07-s39-0', 'u07', '2026-11-14T11:00:42+00:00', 'prod_with_reflexio', 'support-agent@2.0.0', 's39', '{"reflexio_retrieval_enabled": true, "tier": "gold"}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u07-s39-1', 'u07', '2026-11-14T11:05:42+00:00', 'prod_with_reflexio', 'support-agent@2.0.0', 's39', '{"reflexio_retrieval_enabled": true, "tier": "gold"}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u08-s40-0', 'u08', '2026-11-21T12:00:43+00:00', 'prod_with_reflexio', 'support-agent@2.1.0', 's40', '{"reflexio_retrieval_enabled": true}');
INSERT INTO requests (request_id, user_id, created_at, source, agent_version, session_id, metadata) VALUES ('r-u08-s40-1', 'u08', '2026-11-21T12:05:43+00:00', 'prod_with_reflexio', 'support-agent@2.1.0', 's40', '{"reflexio_retrieval_enabled": false}');
CREATE INDEX idx_requests_user_id ON requests(user_id);
CREATE INDEX idx_requests_session_id ON requests(session_id);
CREATE INDEX idx_requests_created_at ON requests(created_at);
CREATE TABLE interactions (
    interaction_id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id TEXT NOT NULL,
    content TEXT NOT NULL DEFAULT '',
    request_id TEXT NOT NULL,
    created_at TEXT NOT NULL,
    role TEXT NOT NULL DEFAULT 'User',
    user_action TEXT NOT NULL DEFAULT 'none',
    user_action_description TEXT NOT NULL DEFAULT '',
    interacted_image_url TEXT NOT NULL DEFAULT '',
    shadow_content TEXT NOT NULL DEFAULT '',
    expert_content TEXT NOT NULL DEFAULT '',
    tools_used TEXT,
    citations TEXT,
    embedding TEXT
);
CREATE INDEX idx_interactions_user_id ON interactions(user_id);
CREATE INDEX idx_interactions_request_id ON interactions(request_id);
CREATE INDEX idx_interactions_created_at ON interactions(created_at);
CREATE TABLE agent_success_evaluation_result (
    result_id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    agent_version TEXT NOT NULL DEFAULT '',
    evaluation_name TEXT,
    is_success INTEGER NOT NULL DEFAULT 0,
    failure_type TEXT,
    failure_reason TEXT,
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
    regular_vs_shadow TEXT,
    number_of_correction_per_session INTEGER NOT NULL DEFAULT 0,
    user_turns_to_resolution INTEGER,
    is_escalated INTEGER NOT NULL DEFAULT 0,
    embedding TEXT
);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (1, 's01', 'support-agent@2.0.0', 'agent_success', 1, '', '', '2026-11-03T09:00:00+00:00', NULL, 0, 1, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (2, 's02', 'support-agent@2.0.0', 'agent_success', 1, '', '', '2026-11-05T10:00:01+00:00', NULL, 1, 2, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (3, 's-shared-1', 'support-agent@2.0.0', 'agent_success', 0, 'wrong_answer', '', '2026-11-06T11:00:02+00:00', NULL, 2, NULL, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (4, 's03', 'support-agent@2.0.0', 'agent_success', 0, 'missing_tool', '', '2026-11-04T12:00:03+00:00', NULL, 1, NULL, 1);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (5, 's04', 'support-agent@2.0.0', 'agent_success', 1, '', '', '2026-11-06T13:00:04+00:00', NULL, 0, 2, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (6, 's-shared-2', 'support-agent@2.0.0', 'agent_success', 1, '', '', '2026-11-07T14:00:05+00:00', NULL, 0, 1, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (7, 's05', 'support-agent@2.0.0', 'agent_success', 1, '', '', '2026-11-07T15:00:06+00:00', NULL, 0, 1, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (8, 's-shared-2', 'support-agent@2.0.0', 'agent_success', 0, 'wrong_tool', '', '2026-11-08T16:00:07+00:00', NULL, 3, NULL, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (9, 's06', 'support-agent@2.0.0', 'agent_success', 1, '', '', '2026-11-09T09:00:08+00:00', NULL, 1, 3, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (10, 's07', 'support-agent@2.0.0', 'agent_success', 1, '', '', '2026-11-08T10:00:09+00:00', NULL, 0, 1, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (11, 's08', 'support-agent@2.0.0', 'agent_success', 0, 'system_error', '', '2026-11-10T11:00:10+00:00', NULL, 0, NULL, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (12, 's09', 'support-agent@2.0.0', 'agent_success', 1, '', '', '2026-11-12T12:00:11+00:00', NULL, 5, 1, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (13, 's-shared-1', 'support-agent@2.0.0', 'agent_success', 1, '', '', '2026-11-09T13:00:12+00:00', NULL, 0, 1, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (14, 's10', 'support-agent@2.0.0', 'agent_success', 0, 'insufficient_info_from_tool', '', '2026-11-11T14:00:13+00:00', NULL, 2, NULL, 1);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (15, 's11', 'support-agent@2.0.0', 'agent_success', 1, '', '', '2026-11-13T15:00:14+00:00', NULL, 0, 1, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (16, 's12', 'support-agent@2.0.0', 'agent_success', 1, '', '', '2026-11-10T16:00:15+00:00', NULL, 0, 2, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (17, 's14', 'support-agent@2.1.0', 'agent_success', 1, '', '', '2026-11-17T10:00:17+00:00', NULL, 0, 1, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (18, 's16', 'support-agent@2.1.0', 'agent_success', 0, 'wrong_answer', '', '2026-11-17T12:00:19+00:00', NULL, 1, NULL, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (19, 's17', 'support-agent@2.1.0', 'agent_success', 1, '', '', '2026-11-18T13:00:20+00:00', NULL, 0, 1, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (20, 's18', 'support-agent@2.1.0', 'agent_success', 1, '', '', '2026-11-18T14:00:21+00:00', NULL, 2, 2, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (21, 's19', 'support-agent@2.1.0', 'agent_success', 1, '', '', '2026-11-19T15:00:22+00:00', NULL, 0, 1, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (22, 's20', 'support-agent@2.1.0', 'agent_success', 0, ' System_Error ', '', '2026-11-20T16:00:23+00:00', NULL, 0, NULL, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (23, 's21', 'support-agent@2.1.0', 'agent_success', 1, '', '', '2026-11-19T09:00:24+00:00', NULL, 0, 1, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (24, 's22', 'support-agent@2.1.0', 'agent_success', 0, 'wrong_answer', '', '2026-11-21T10:00:25+00:00', NULL, 4, NULL, 1);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (25, 's23', 'support-agent@2.1.0', 'agent_success', 1, '', '', '2026-11-22T11:00:26+00:00', NULL, 0, 1, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (26, 's24', 'support-agent@2.1.0', 'agent_success', 1, '', '', '2026-11-20T12:00:27+00:00', NULL, 0, 1, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (27, 's25', 'support-agent@2.1.0', 'agent_success', 1, '', '', '2026-11-22T13:00:28+00:00', NULL, 0, 1, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (28, 's26', 'support-agent@2.1.0', 'agent_success', 1, '', '', '2026-11-23T14:00:29+00:00', NULL, 1, 2, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (29, 's27', 'support-agent@2.1.0', 'agent_success', 0, 'wrong_tool', '', '2026-11-23T15:00:30+00:00', NULL, 0, NULL, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (30, 's28', 'support-agent@2.1.0', 'agent_success', 1, '', '', '2026-11-24T16:00:31+00:00', NULL, 0, 1, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (31, 's29', 'support-agent@2.1.0', 'agent_success', 1, '', '', '2026-11-25T09:00:32+00:00', NULL, 0, 3, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (32, 's30', 'support-agent@2.1.0', 'agent_success', 0, 'missing_tool', '', '2026-11-24T10:00:33+00:00', NULL, 1, NULL, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (33, 's31', 'support-agent@2.1.0', 'agent_success', 1, '', '', '2026-11-25T11:00:34+00:00', NULL, 0, 1, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (34, 's33', 'support-agent@2.1.0', 'agent_success', 1, '', '', '2026-11-26T13:00:36+00:00', NULL, 0, 1, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (35, 's34', 'support-agent@2.1.0', 'agent_success', 1, '', '', '2026-11-27T14:00:37+00:00', NULL, 1, 2, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (36, 's35', 'support-agent@2.1.0', 'agent_success', 1, '', '', '2026-11-28T15:00:38+00:00', NULL, 0, 1, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (37, 's36', 'support-agent@2.1.0', 'agent_success', 0, 'wrong_answer', '', '2026-11-28T16:00:39+00:00', NULL, 2, NULL, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (38, 's37', 'support-agent@2.1.0', 'agent_success', 1, '', '', '2026-11-29T09:00:40+00:00', NULL, 0, 1, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (39, 's38', 'support-agent@2.0.0', 'agent_success', 1, '', '', '2026-11-04T10:00:41+00:00', NULL, 0, 2, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (40, 's39', 'support-agent@2.0.0', 'agent_success', 1, '', '', '2026-11-14T11:00:42+00:00', NULL, 0, 2, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (41, 's40', 'support-agent@2.1.0', 'agent_success', 1, '', '', '2026-11-21T12:00:43+00:00', NULL, 0, 2, 0);
INSERT INTO agent_success_evaluation_result (result_id, session_id, agent_version, evaluation_name, is_success, failure_type, failure_reason, created_at, regular_vs_shadow, number_of_correction_per_session, user_turns_to_resolution, is_escalated) VALUES (42, 's-orphan', 'support-agent@2.1.0', 'agent_success', 1, NULL, NULL, '2026-11-20T03:00:00+00:00', NULL, 0, NULL, 0);
CREATE INDEX idx_eval_agent_version ON agent_success_evaluation_result(agent_version);
CREATE INDEX idx_eval_created_at ON agent_success_evaluation_result(created_at);
CREATE TABLE shadow_comparison_verdicts (
    verdict_id              INTEGER PRIMARY KEY AUTOINCREMENT,
    interaction_id          TEXT    NOT NULL,
    session_id              TEXT    NOT NULL,
    agent_version           TEXT    NOT NULL,
    reflexio_is_request_1   INTEGER NOT NULL,
    better_request          TEXT    NOT NULL CHECK (better_request IN ('1','2','tie')),
    is_significantly_better INTEGER NOT NULL,
    comparison_reason       TEXT,
    judge_prompt_version    TEXT    NOT NULL,
    created_at              TEXT    NOT NULL DEFAULT CURRENT_TIMESTAMP
);
CREATE INDEX idx_shadow_verdicts_session
    ON shadow_comparison_verdicts (session_id, agent_version);
CREATE INDEX idx_shadow_verdicts_created_at
    ON shadow_comparison_verdicts (created_at);
CREATE INDEX idx_shadow_verdicts_prompt_v
    ON shadow_comparison_verdicts (judge_prompt_version);
CREATE TABLE _operation_state (
    service_name TEXT PRIMARY KEY,
    operation_state TEXT NOT NULL DEFAULT '{}',
    updated_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
CREATE TABLE profiles (
    profile_id TEXT PRIMARY KEY,
    user_id TEXT NOT NULL,
    content TEXT NOT NULL DEFAULT '',
    last_modified_timestamp INTEGER NOT NULL,
    generated_from_request_id TEXT NOT NULL DEFAULT '',
    profile_time_to_live TEXT NOT NULL DEFAULT 'infinity',
    expiration_timestamp INTEGER NOT NULL DEFAULT 4102444800,
    custom_features TEXT,
    embedding TEXT,
    source TEXT DEFAULT '',
    status TEXT,
    extractor_names TEXT,
    expanded_terms TEXT,
    source_span TEXT,
    notes TEXT,
    reader_angle TEXT,
    created_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
);
CREATE INDEX idx_profiles_user_id ON profiles(user_id);
CREATE INDEX idx_profiles_status ON profiles(status);
CREATE TABLE user_playbooks (
    user_playbook_id INTEGER PRIMARY KEY AUTOINCREMENT,
    user_id TEXT,
    playbook_name TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL,
    request_id TEXT NOT NULL,
    agent_version TEXT NOT NULL DEFAULT '',
    content TEXT NOT NULL DEFAULT '',
    trigger TEXT,
    rationale TEXT,
    blocking_issue TEXT,
    source_interaction_ids TEXT,
    status TEXT,
    source TEXT,
    embedding TEXT,
    expanded_terms TEXT,
    source_span TEXT,
    notes TEXT,
    reader_angle TEXT
);
CREATE INDEX idx_user_playbooks_playbook_name ON user_playbooks(playbook_name);
CREATE INDEX idx_user_playbooks_agent_version ON user_playbooks(agent_version);
CREATE INDEX idx_user_playbooks_status ON user_playbooks(status);
CREATE INDEX idx_user_playbooks_created_at ON user_playbooks(created_at);
CREATE TABLE agent_playbooks (
    agent_playbook_id INTEGER PRIMARY KEY AUTOINCREMENT,
    playbook_name TEXT NOT NULL DEFAULT '',
    created_at TEXT NOT NULL,
    agent_version TEXT NOT NULL DEFAULT '',
    content TEXT NOT NULL DEFAULT '',
    trigger TEXT,
    rationale TEXT,
    blocking_issue TEXT,
    playbook_status TEXT NOT NULL DEFAULT 'pending',
    playbook_metadata TEXT NOT NULL DEFAULT '',
    embedding TEXT,
    expanded_terms TEXT,
    status TEXT
);
CREATE INDEX idx_agent_playbooks_playbook_name ON agent_playbooks(playbook_name);
CREATE INDEX idx_agent_playbooks_agent_version ON agent_playbooks(agent_version);
CREATE INDEX idx_agent_playbooks_status ON agent_playbooks(status);
CREATE INDEX idx_agent_playbooks_created_at ON agent_playbooks(created_at);
CREATE TABLE imported_score (
    rowid INTEGER PRIMARY KEY AUTOINCREMENT,
    org_id TEXT NOT NULL,
    source TEXT NOT NULL,
    source_run_id TEXT NOT NULL,
    session_id TEXT,
    scorer_name TEXT NOT NULL,
    value REAL NOT NULL,
    ts INTEGER NOT NULL,
    UNIQUE (org_id, source, source_run_id, scorer_name)
);
CREATE INDEX idx_imported_score_session
    ON imported_score (org_id, session_id) WHERE session_id IS NOT NULL;
CREATE INDEX idx_imported_score_ts ON imported_score (org_id, ts);
COMMIT;
