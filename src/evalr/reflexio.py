from evalr_reflexio import open_store
